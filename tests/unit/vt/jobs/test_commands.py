"""`vt jobs` through the official clients against services in this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from localgcp.apis.server import serve
from localgcp.inventory.store import SERVICE
from localgcp.vertex.log_entries import LogService
from localgcp.vertex.records import JobState
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import PROJECT, Cloud, command_job, wait_until
from tests.unit.vt.jobs.submitting import done, submit, submit_with, until_running
from vertex_training.customjob.protocol.ports import program_label
from vertex_training_cli.cli import app

Vt = Callable[..., Result]


@pytest.fixture
def vt(cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Vt]:
    """`vt jobs …` in a project whose stack `local` lives in the cloud of this process."""
    cloud.store.put(SERVICE, f"{PROJECT}/logging.googleapis.com", PROJECT, {}, {})
    logs = LogService(cloud.home, cloud.store, cloud.jobs)
    service = JobService(cloud.store, cloud.jobs, cloud.scheduler)
    server = serve([service, logs, cloud.studies], 0)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")
    monkeypatch.delenv("PULUMI_STACK", raising=False)
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    for stack in ("local", "other"):
        (folder / f"Pulumi.{stack}.yaml").write_text(
            f"config: {{gcp:project: {PROJECT}, gcp:region: us-central1}}\n"
        )
    (folder / "Pulumi.dev.yaml").write_text(
        "config: {gcp:project: acme-ml-dev, gcp:region: us-central1}\n"
    )
    monkeypatch.chdir(folder)

    def run(*arguments: str, stack: str = "local", code: int = 0, **options: Any) -> Result:
        command, *rest = arguments
        done = CliRunner().invoke(app, ["jobs", command, "--stack", stack, *rest], **options)
        assert done.exit_code == code, done.output
        return done

    yield run
    server.stop(None).wait()


def ids(result: Result) -> list[str]:
    return [row["id"] for row in json.loads(result.stdout)]


def test_a_job_with_both_labels_of_a_stack_is_listed_once(vt: Vt, cloud: Cloud) -> None:
    """Whoever may submit jobs may label them as the program would never do."""
    program = program_label("demo", "local")
    labels = {"vt-stack": "local", "vt-program": program, "vt-job": "train", "vt-request-id": "x"}
    id_ = done(cloud, submit_with(cloud, "true", "train", labels))
    assert ids(vt("list", "--format", "json")) == [id_]


def test_the_list_is_of_the_stacks_own_jobs_newest_first(vt: Vt, cloud: Cloud) -> None:
    first = done(cloud, submit(cloud, "true", "train"))
    cloud.run(command_job("true"))  # somebody else's
    done(cloud, submit(cloud, "true", "train", stack="other"))
    second = done(cloud, submit(cloud, "true", "train", run=2))
    assert ids(vt("list", "--format", "json")) == [second, first]
    assert len(ids(vt("list", "--all", "--format", "json"))) == 4
    head, newest, oldest = vt("list").stdout.splitlines()
    assert head.split() == ["JOB", "RUN", "STATE", "CREATED", "DURATION", "ID"]
    assert newest.split()[:3] == ["train", "2", "SUCCEEDED"]
    assert oldest.split()[-1] == first


def test_the_list_is_narrowed_by_state_label_and_number(vt: Vt, cloud: Cloud) -> None:
    good = done(cloud, submit(cloud, "true", "good"))
    bad = done(cloud, submit(cloud, "false", "bad"))
    as_json = ("--format", "json")
    assert ids(vt("list", "--state", "failed", *as_json)) == [bad]
    assert ids(vt("list", "--state", "FAILED", "--state", "succeeded", *as_json)) == [bad, good]
    assert ids(vt("list", "--label", "vt-job=good", *as_json)) == [good]
    short = vt("list", "--limit", "1")
    assert "1 older ones are not shown" in short.stderr
    assert good not in short.stdout
    assert "no such jobs" in vt("list", "--state", "paused").stderr


def test_a_job_is_found_by_name_id_or_resource_name(vt: Vt, cloud: Cloud) -> None:
    old = done(cloud, submit(cloud, "true", "train"))
    new = done(cloud, submit(cloud, "exit 3", "train", run=2))
    told = vt("show", "train").stdout
    assert new in told
    assert "FAILED" in told
    assert "1 x n1-standard-4" in told
    assert "vt jobs logs" in told or "vt local logs" in told
    message = json.loads(vt("show", old, "--format", "json").stdout)
    assert message["state"] == "JOB_STATE_SUCCEEDED"
    assert json.loads(vt("show", message["name"], "--format", "json").stdout) == message


def test_a_job_that_is_not_there_is_said_with_what_there_is(vt: Vt, cloud: Cloud) -> None:
    done(cloud, submit(cloud, "true", "titanic"))
    told = vt("show", "titanik", code=1).stderr
    assert told == (
        "vt jobs show: stack local has submitted no job 'titanik'. Hint: did you mean 'titanic'?\n"
    )
    assert "there is no job" in vt("show", "123", code=1).stderr
    assert "is no name of a job" in vt("cancel", "projects/p/x", "--yes", code=1).stderr


def test_the_log_is_printed_followed_or_cut(vt: Vt, cloud: Cloud) -> None:
    go = cloud.home.root / "go"
    job_id = submit(cloud, f"until [ -e {go} ]; do sleep 0.05; done; seq 1 5", "train")
    go.touch()
    followed = vt("logs", "train", "--follow").stdout
    assert followed.splitlines()[-1] == cloud_lines(cloud, job_id)[-1]
    assert [line for line in followed.splitlines() if line.isdecimal()] == list("12345")
    assert vt("logs", "train").stdout == followed
    assert vt("logs", "train", "--tail", "2").stdout == "\n".join(
        followed.splitlines()[-2:]
    ) + "\n"  # fmt: skip
    lines = vt("logs", job_id, "--format", "json", "--replica", "workerpool0-0").stdout
    assert {json.loads(line)["replica"] for line in lines.splitlines()} == {"workerpool0-0"}


def test_a_log_without_lines_is_told_from_a_replica_that_is_not_there(vt: Vt, cloud: Cloud) -> None:
    job_id = done(cloud, submit(cloud, "true", "train"))
    # The runner's last line comes after the state.
    wait_until(lambda: cloud_lines(cloud, job_id)[-1].endswith("SUCCEEDED"))
    (cloud.home.jobs / job_id / "logs" / "workerpool0-0.log").write_text("")
    empty = vt("logs", "train", "--replica", "workerpool0-0")
    assert (empty.stdout, empty.stderr) == (
        "", "vt: nothing is in the log of job train, which is SUCCEEDED\n"
    )  # fmt: skip
    assert vt("logs", "train", "--replica", "workerpool1-0", code=1).stderr == (
        "vt jobs logs: job train has no replica 'workerpool1-0'. Hint: it has: workerpool0-0.\n"
    )


def cloud_lines(cloud: Cloud, job_id: str) -> list[str]:
    log = cloud.home.jobs / job_id / "logs" / "workerpool0-0.log"
    return log.read_text().splitlines()


def test_waiting_tells_by_its_exit_code_how_it_went(vt: Vt, cloud: Cloud) -> None:
    submit(cloud, "true", "good")
    submit(cloud, "echo reason; exit 3", "bad")
    assert "job good: SUCCEEDED" in vt("wait", "good").stderr
    failed = vt("wait", "good", "bad", code=1)
    assert "job 'bad' is FAILED" in failed.stderr
    assert "  reason" in failed.stderr
    assert failed.stdout == ""
    long = until_running(cloud, submit(cloud, "sleep 600", "long"))
    assert "job long: RUNNING" in vt("wait", "long", "--for", "running").stderr
    assert "had 1s to succeed" in vt("wait", "long", "--deadline", "1s", code=124).stderr
    cloud.jobs.move(long, JobState.CANCELLING)
    cloud.scheduler.cancel(long)


def test_cancelling_asks_and_leaves_ended_jobs_alone(vt: Vt, cloud: Cloud) -> None:
    over = done(cloud, submit(cloud, "true", "over"))
    live = until_running(cloud, submit(cloud, "sleep 600", "live"))
    assert "add --yes" in vt("cancel", "live", code=2).stderr
    record = cloud.jobs.get(live)
    assert record
    assert record.state is JobState.RUNNING
    told = vt("cancel", "over", "live", "--yes").stderr
    assert f"job over ({over}) has ended: SUCCEEDED" in told
    assert f"job live ({live}): asked to cancel" in told
    record = cloud.jobs.get(done(cloud, live))
    assert record
    assert record.state is JobState.CANCELLED


def test_a_question_that_is_not_answered_cancels_nothing(vt: Vt, cloud: Cloud) -> None:
    job_id = until_running(cloud, submit(cloud, "sleep 600", "long"))
    terminal, its_end = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "vertex_training_cli.cli", "jobs", "cancel", "-s", "local", "long"],
        stdin=its_end, stderr=subprocess.PIPE, text=True,
    ) as asking:  # fmt: skip
        assert asking.stderr
        told = ""
        while "? [y/N]" not in told:
            told += asking.stderr.read(1)
        os.write(terminal, b"\x04")  # Ctrl-D; Ctrl-C is told by the same exception
        assert asking.wait(60) == 130
        assert "Traceback" not in asking.stderr.read()
    os.close(terminal)
    os.close(its_end)
    record = cloud.jobs.get(job_id)
    assert record
    assert record.state is JobState.RUNNING
    cloud.jobs.move(job_id, JobState.CANCELLING)
    cloud.scheduler.cancel(job_id)


def test_labels_of_a_user_are_not_taken_for_the_stacks(vt: Vt, cloud: Cloud) -> None:
    mine = {"stack": "local", "job": "mine", "run": "nightly"}
    done(cloud, submit_with(cloud, "true", "x", mine))
    ours = {"vt-stack": "local", "vt-job": "theirs", "vt-run": "1", "vt-request-id": "r"}
    done(cloud, submit_with(cloud, "true", "x", {**ours, **mine, "request-id": "copied"}))
    [row] = json.loads(vt("list", "--format", "json").stdout)
    assert (row["job"], row["run"]) == ("theirs", "1")


def test_another_ones_job_may_have_any_labels(vt: Vt, cloud: Cloud) -> None:
    body = {**command_job("true"), "labels": {"run": "nightly"}}
    job_id = done(cloud, cloud.submit(body).name.rpartition("/")[2])
    assert "SUCCEEDED" in vt("wait", job_id).stderr


def test_a_real_project_is_not_looked_for_in_the_local_cloud(vt: Vt) -> None:
    told = vt("list", stack="dev", code=1).stderr
    assert "project 'acme-ml-dev' is no local one" in told
    assert "Traceback" not in told


def test_without_credentials_it_says_how_to_sign_in(
    vt: Vt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("VERTEX_EMULATOR_HOST")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")  # do not look for a metadata server
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    told = vt("list", stack="dev", code=1).stderr
    assert "gcloud auth application-default login" in told


def test_an_unknown_stack_or_no_checkout_is_one_line(
    vt: Vt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = vt("list", stack="prod", code=2).stderr
    assert told.startswith("vt jobs list: no file Pulumi.prod.yaml in ")
    assert told.endswith(" (stacks here: dev, local, other)\n")
    monkeypatch.chdir(tmp_path)
    assert "there is no Pulumi.yaml here or above" in vt("list", code=1).stderr


def test_a_right_that_is_missing_is_named(vt: Vt, cloud: Cloud) -> None:
    cloud.store.delete(SERVICE, f"{PROJECT}/aiplatform.googleapis.com")
    told = vt("list", code=1).stderr
    assert "PERMISSION_DENIED" in told
    assert "roles/aiplatform.viewer" in told


def test_no_command_loads_google_or_pulumi_before_it_needs_them() -> None:
    heavy = "{'google.api_core', 'google.protobuf', 'grpc', 'pulumi'} & set(sys.modules)"
    command = [
        sys.executable,
        "-c",
        f"import sys, vertex_training_cli.cli; assert not {heavy}, {heavy}",
    ]
    subprocess.run(command, check=True)


def test_a_stack_file_that_cannot_be_read_is_one_line(vt: Vt) -> None:
    Path("Pulumi.bytes.yaml").write_bytes(b"config: \xff\n")
    Path("Pulumi.folder.yaml").mkdir()
    assert "it is not UTF-8" in vt("list", stack="bytes", code=1).stderr
    assert "no file Pulumi.folder.yaml in" in vt("list", stack="folder", code=2).stderr


def test_progress_at_a_terminal_shows_brackets_in_a_name_as_they_are(vt: Vt, cloud: Cloud) -> None:
    body = {**command_job("true"), "display_name": "a [bold]job[/]"}
    job_id = done(cloud, cloud.submit(body).name.rpartition("/")[2])
    terminal = {"TERM": "xterm", "FORCE_COLOR": "1", "COLUMNS": "200"}
    assert "job a [bold]job[/]: SUCCEEDED" in vt("wait", job_id, env=terminal).stderr
