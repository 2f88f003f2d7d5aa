"""Tests ``vt run`` with the real engine and local cloud: it runs one job, and nothing else."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from localgcp.home import Home
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.conftest import Checkout, copy_checkout
from tests.e2e.small_stacks import PROGRAMS, SmallStack, job_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SCRIPT = PROGRAMS["run"]["SCRIPT"]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    made = copy_checkout(tmp_path_factory.mktemp("run") / "checkout", sample_code=False)
    yield made
    made.run("vt", "local", "down")


@pytest.fixture(scope="module")
def stack(checkout: Checkout) -> SmallStack:
    made = SmallStack(checkout, "small")
    quick = job_file()
    quick["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["command"] = ["true"]
    made.write(
        {"busy": job_file(), "quick": quick}, jobs={"quick": {"file": "jobs/small-quick.yaml"}}
    )
    shell = job_file()
    task = shell["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
    task |= {"command": ["sh", "-c", 'echo "ran with $*"; exit ${1#--code=}', "x"]}
    task["args"] = ["--code=0"]
    made._dump("jobs/shell.yaml", shell)
    told = checkout.run("vt", "local", "up", "--stack", "small").stdout
    # Nothing that ran on this host is plainly called SUCCEEDED, neither on the way nor at the end.
    assert told.count("SUCCEEDED (on this host, not in us-docker.pkg.dev/") == 2
    assert told.count("SUCCEEDED") == 2
    return made


def jobs(checkout: Checkout, name: str) -> list[JobRecord]:
    table = JobTable(Home(checkout.home, checkout.path).database)
    return [each for each in table.list() if each.labels.get("vt-job") == name]


def test_script_in_a_plain_folder_runs_with_its_folder(checkout: Checkout, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("GREETING = open('data/deep/greeting.txt').read()\n")
    (tmp_path / "data/deep").mkdir(parents=True)
    (tmp_path / "data/deep/greeting.txt").write_text("hello from beside")
    (tmp_path / "secret.pem").symlink_to("/etc/hostname")
    (tmp_path / "requirements.txt").write_text("numpy==1.26.4\n")
    plain = Checkout(tmp_path, checkout.home)
    (tmp_path / ".venv").symlink_to(checkout.path / ".venv")
    done = plain.run("vt", "run", "train.py", "--", "--epochs=3")
    assert "hello from beside --epochs=3" in done.stdout
    assert "installing script-" in done.stdout
    assert "SUCCEEDED" in done.stderr
    assert (
        "files that are not sent: secret.pem (a link to a file outside of the folder)"
        in done.stderr
    )
    (tmp_path / "train.py").write_text(f"{SCRIPT}\n# edited\n")
    failed = plain.run("vt", "run", "train.py", "--", "--fail", expect=7)
    assert "installing" not in failed.stdout
    assert "FAILED" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert [each.labels["vt-run"] for each in jobs(checkout, "run_train")] == ["2", "1"]


def test_piped_output_has_the_order_of_the_log(checkout: Checkout, tmp_path: Path) -> None:
    (tmp_path / "order.py").write_text(
        "import sys, time\nprint('first', flush=True)\ntime.sleep(12)\n"
        "for number in range(3000): print(number)\nprint('warned', file=sys.stderr)\n"
        "time.sleep(1)\nraise SystemExit('last')\n"
    )
    line = [str(checkout.path / ".venv/bin/vt"), "run", "order.py"]
    env = {**os.environ, "VT_LOCAL_HOME": str(checkout.home)}
    piped = subprocess.run(
        line, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False,
    )  # fmt: skip
    assert piped.returncode == 1
    stored = subprocess.run(
        [line[0], "jobs", "logs", "run_order"], cwd=tmp_path, env=env, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    lines = piped.stdout.splitlines()
    assert [each for each in lines if not each.startswith("vt: ")] == stored.stdout.splitlines()
    assert lines[-1].startswith("vt: run_order: FAILED")


def test_script_runs_are_listed_in_a_checkout_and_in_a_plain_folder(
    checkout: Checkout, stack: SmallStack, tmp_path: Path
) -> None:
    (tmp_path / "sleeps.py").write_text(
        "import time\nprint('begun', flush=True)\ntime.sleep(600)\n"
    )
    (tmp_path / ".venv").symlink_to(checkout.path / ".venv")
    plain = Checkout(tmp_path, checkout.home)
    first, second = (plain.run("vt", "run", "-d", "sleeps.py").stdout.strip() for _ in range(2))
    for place, stack_options in ((plain, ()), (checkout, ("--stack", "small"))):
        listed = place.run("vt", "jobs", "list", *stack_options).stdout
        assert first in listed
        assert second in listed
        shown = place.run("vt", "jobs", "show", "run_sleeps-2", *stack_options).stdout
        assert second in shown
        place.run("vt", "jobs", "compare", first, second, *stack_options)
    SmallStack(checkout, "new").write({})  # never deployed: its project has no API
    for words in ("list", "show run_sleeps-2", f"show {second}"):
        assert second in checkout.run("vt", "jobs", *words.split(), "--stack", "new").stdout
    checkout.run("vt", "jobs", "compare", "quick", first, "--stack", "small")
    checkout.run("vt", "jobs", "cancel", first, second, "--yes", "--stack", "small")
    checkout.run("vt", "jobs", "logs", "run_sleeps", "-f", "--stack", "small")
    again = checkout.run("vt", "jobs", "cancel", first, "--yes", "--stack", "small").stderr
    assert "has already ended" in again


def test_two_scripts_of_one_name_run_their_own_code(checkout: Checkout, tmp_path: Path) -> None:
    vt, env = checkout.path / ".venv/bin/vt", {**os.environ, "VT_LOCAL_HOME": str(checkout.home)}
    started: list[subprocess.Popen[str]] = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / ".venv").symlink_to(checkout.path / ".venv")
        (folder / "twin.py").write_text(f"import time\nprint('code of {name}')\ntime.sleep(5)\n")
        started.append(
            subprocess.Popen(
                [vt, "run", "-d", "twin.py"], cwd=folder, env=env, stdout=subprocess.PIPE, text=True
            )
        )
    ids = [process.communicate(timeout=300)[0].strip() for process in started]
    assert len(set(ids)) == 2
    plain = Checkout(tmp_path / "a", checkout.home)
    for id_, name in zip(ids, ("a", "b"), strict=True):
        plain.run("vt", "jobs", "wait", id_)
        assert f"code of {name}" in plain.run("vt", "jobs", "logs", id_).stdout
    assert {"run_twin", "run_twin-2"} <= {*plain.run("vt", "jobs", "list").stdout.split()}


def test_runs_are_listed_without_a_local_stack(checkout: Checkout, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: other\nruntime: python\n")
    (tmp_path / ".venv").symlink_to(checkout.path / ".venv")
    (tmp_path / "brief.py").write_text(SCRIPT.replace("from beside import", "GREETING = 'x' #"))
    plain = Checkout(tmp_path, checkout.home)
    plain.run("vt", "run", "brief.py")
    assert "run_brief" in plain.run("vt", "jobs", "list", "--stack", "local").stdout
    assert "metrics.json" in plain.run("vt", "jobs", "artifacts", "run_brief").stdout
    (tmp_path / "Pulumi.dev.yaml").write_text(
        "config: {gcp:project: acme-dev, gcp:region: us-central1}\n"
    )
    refused = plain.run("vt", "jobs", "list", "--stack", "dve", expect=2).stderr
    assert "Pulumi.dve.yaml" in refused


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGHUP])
def test_terminated_run_prints_how_to_cancel_its_job_or_cancels_it(
    checkout: Checkout, tmp_path: Path, ended_by: signal.Signals
) -> None:
    (tmp_path / "long.py").write_text("import time\ntime.sleep(600)\n")
    line = [str(checkout.path / ".venv/bin/vt"), "run", "long.py"]
    env = {**os.environ, "VT_LOCAL_HOME": str(checkout.home)}
    for options in ([], ["--cancel-on-exit"]):
        process = subprocess.Popen(
            [*line, *options], cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        next(text for text in process.stderr if "submitted run_long" in text)
        time.sleep(1)
        process.send_signal(ended_by)
        told = process.stderr.read()
        assert process.wait(timeout=60) == 143
        command = re.search(r"continues to run\. To cancel the job: `vt (jobs cancel [^`]+)`", told)
        if options:
            assert "CANCELLED" in told
            continue
        assert command, told
        done = subprocess.run(
            [line[0], *command[1].split(), "--yes"],
            cwd=tmp_path, env=env, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert "cancellation requested" in done.stderr
        subprocess.run([line[0], "jobs", "wait", "run_long"], cwd=tmp_path, env=env, check=False)


def test_single_run_of_a_stacks_job_file_changes_no_state(stack: SmallStack) -> None:
    checkout = stack.checkout
    done = checkout.run("vt", "run", "jobs/shell.yaml", "--stack", "small", "--", "--code=0", "-v")
    assert "ran with --code=0 -v" in done.stdout
    again = checkout.run("vt", "run", "jobs/shell.yaml", "-s", "small", "--", "--code=3", expect=3)
    assert "ran with --code=3\n" in again.stdout
    found = jobs(checkout, "run_shell")
    assert [each.labels["vt-run"] for each in found] == ["2", "1"]
    assert {each.labels["vt-stack"] for each in found} == {"small"}
    stack.pulumi("preview --expect-no-changes")
    listed = checkout.run("vt", "jobs", "list", "-s", "small")
    assert "SUCCEEDED*" in listed.stdout
    assert "vt jobs show" in listed.stderr
    shown = checkout.run("vt", "jobs", "show", "quick", "-s", "small").stdout
    assert "on this host, not in us-docker.pkg.dev/" in shown


def test_ctrl_c_cancels_the_job_and_a_running_job_is_not_submitted_again(stack: SmallStack) -> None:
    checkout = stack.checkout
    line = [str(checkout.path / ".venv/bin/vt"), "run", "jobs/small-busy.yaml", "-s", "small"]
    env = {**os.environ, "VT_LOCAL_HOME": str(checkout.home)}
    first = subprocess.Popen(
        line, cwd=checkout.path, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert first.stderr is not None
    next(text for text in first.stderr if "submitted run_small-busy" in text)
    ends = time.monotonic() + 60
    while jobs(checkout, "run_small-busy")[0].state is not JobState.RUNNING:
        assert time.monotonic() < ends
        time.sleep(0.2)
    refused = checkout.run(*line, expect=1)
    assert "vt jobs cancel" in refused.stderr or "cancel" in refused.stderr
    os.kill(first.pid, signal.SIGINT)
    assert first.wait(timeout=60) == 130
    assert [each.state for each in jobs(checkout, "run_small-busy")] == [JobState.CANCELLED]


def test_missing_stack_and_mistake_in_a_file_are_explained(stack: SmallStack) -> None:
    checkout = stack.checkout
    other = SmallStack(checkout, "never")
    other.write({"busy": job_file()})
    told = checkout.run("vt", "run", "busy", "-s", "never", expect=1).stderr
    assert "stack never is not deployed" in told
    assert "vt local up --stack never" in told
    wrong = job_file(scheduling={"timeout": "24h"}, nonsense=1)
    other._dump("jobs/wrong.yaml", wrong)
    told = checkout.run("vt", "run", "jobs/wrong.yaml", "-s", "small", expect=1).stderr
    assert "jobs/wrong.yaml:" in told
    assert "24h" in told
    assert "nonsense" in told
    assert "Traceback" not in told


def test_running_single_job_is_no_orphan_and_blocks_destroy(stack: SmallStack) -> None:
    """The job is in no state, and uses resources that a destroy deletes."""
    checkout = stack.checkout
    other = SmallStack(checkout, "kept")
    busy = job_file()
    other.write({"busy": busy}, jobs={})
    checkout.run("vt", "local", "up", "--stack", "kept")
    ran = checkout.run("vt", "run", "jobs/kept-busy.yaml", "-s", "kept", "--detach")
    number = ran.stdout.strip()
    raised = checkout.run("vt", "up", "--stack", "kept", "--yes", "--skip-preview")
    drift = checkout.run("vt", "drift", "--stack", "kept")
    for told in (raised, drift):
        assert number not in told.stdout + told.stderr
        assert "run_kept-busy" not in told.stdout + told.stderr
    destroy = ("vt", "destroy", "--stack", "kept", "--yes", "--name", "kept")
    refused = checkout.run(*destroy, expect=3)
    cancel = f"vt jobs cancel {number} --stack kept"
    assert (
        f"run_kept-busy (run 1), to cancel the job: `{cancel}`" in refused.stdout + refused.stderr
    )
    assert other.states() == [JobState.RUNNING]
    checkout.run(*cancel.split(), "--yes")
    deadline = time.monotonic() + 60
    while other.states() != [JobState.CANCELLED]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    # One that has ended holds nothing, whatever the control bucket keeps of it.
    checkout.run(*destroy)
    assert other.left() == {}


def test_sample_job_runs_unchanged(checkout: Checkout) -> None:
    stack = SmallStack(checkout, "taken")
    stack.write({}, jobs={})
    checkout.run("vt", "new", "job", "--stack", "taken", "--write", "fit")
    checkout.run("vt", "local", "up", "--stack", "taken")
    assert stack.states() == [JobState.SUCCEEDED]
    assert "epoch 2: loss" in checkout.run("vt", "jobs", "logs", "fit", "--stack", "taken").stdout
