"""`vt up` with a `pulumi` that only writes down how it was called."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from localgcp.apis.server import serve
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import PROJECT, Cloud, wait_until
from tests.unit.vt.jobs.submitting import submit, until_running
from vertex_training.errors import Problem
from vertex_training_cli.cli import app
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.up import flow
from vertex_training_cli.up.flow import (
    PendingCreates,
    explanation,
    find_pending,
    report_orphaned_jobs,
)

PULUMI = """\
#!/bin/sh
echo "$*" >>{calls}
[ "$1" = "$FAILING" ] && exit 7
[ "$1 $2" = "stack export" ] && cat {exported}
[ "$1" = "whoami" ] && cat {whoami}
exit 0
"""
STACK = f"config: {{gcp:project: {PROJECT}, gcp:region: us-central1}}\n"
SETTLED = "urn:pulumi:local::demo::gcp:storage/bucket:Bucket::storage-data"

Up = Callable[..., Result]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A project with one local stack and a state without resources."""
    root = tmp_path / "checkout"
    root.mkdir()
    (root / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    (root / "Pulumi.local.yaml").write_text(STACK)
    (tmp_path / "exported").write_text("{}")
    pulumi = tmp_path / "bin" / "pulumi"
    pulumi.parent.mkdir()
    pulumi.write_text(
        PULUMI.format(
            calls=tmp_path / "calls", exported=tmp_path / "exported", whoami=tmp_path / "whoami"
        )
    )
    pulumi.chmod(0o755)
    return root


@pytest.fixture
def up(
    checkout: Path, tmp_path: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Up]:
    server = serve([JobService(cloud.store, cloud.jobs, cloud.scheduler), cloud.studies], 0)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")
    monkeypatch.setenv("VT_LOCAL_HOME", str(cloud.home.root))
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(checkout)

    def run(*words: str, failing: str = "", expect: int = 0) -> Result:
        monkeypatch.setenv("FAILING", failing)
        result = CliRunner().invoke(app, ["up", "--stack", "local", *words])
        assert result.exit_code == expect, result.output
        return result

    yield run
    server.stop(None).wait()


def calls(tmp_path: Path) -> list[str]:
    file = tmp_path / "calls"
    return file.read_text().splitlines() if file.exists() else []


def lock(tmp_path: Path, pid: int) -> Path:
    file = tmp_path / ".pulumi/locks/organization/demo/local/x.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"pid": pid, "hostname": socket.gethostname()}))
    return file


def dead_process() -> int:
    with subprocess.Popen(["true"]) as process:
        pass
    return process.pid


def test_without_pulumi_there_is_one_line_with_a_hint(
    up: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr("sys.executable", str(tmp_path / "empty" / "python"))
    told = up(expect=1).stderr
    assert told == "vt up: there is no pulumi on PATH. Hint: run `vt setup`.\n"


def test_the_lock_of_a_dead_run_goes_and_so_do_the_plugins_it_left_behind(
    up: Up, tmp_path: Path, cloud: Cloud
) -> None:
    file = lock(tmp_path, dead_process())
    note = tmp_path / "orphan"
    sleep = f'"{sys.executable}" -c "import time; time.sleep(600)  # pulumi.dynamic"'
    script = f'{sleep} >/dev/null 2>&1 & echo $! >"{note}"'
    subprocess.run(["sh", "-c", script], env=dict(os.environ), check=True)
    orphan = Path(f"/proc/{int(note.read_text())}/cmdline")
    wait_until(lambda: b"pulumi.dynamic" in orphan.read_bytes())

    told = up().stderr

    assert "is gone: lock removed" in told
    assert not file.exists()
    wait_until(lambda: not orphan.exists() or not orphan.read_bytes())


def test_what_a_killed_run_had_begun_is_cleared_with_the_config_file_of_the_up(
    up: Up, tmp_path: Path
) -> None:
    pending = [{"type": "creating", "resource": {"urn": SETTLED}}]
    state = {"resources": [{"urn": SETTLED}], "pending_operations": pending}
    (tmp_path / "exported").write_text(json.dumps({"deployment": state}))
    told = up("--yes", "--config-file", "x.yaml").stderr
    assert "a killed run had begun to create storage-data" in told
    assert calls(tmp_path)[-1] == (
        "refresh --stack local --yes --skip-preview --non-interactive --clear-pending-creates "
        f"--config-file x.yaml --target {SETTLED}"
    )


def test_what_may_exist_all_the_same_is_told_and_not_cleared(up: Up, tmp_path: Path) -> None:
    pending = [{"type": "creating", "resource": {"urn": SETTLED}}]
    state = {"resources": [], "pending_operations": pending}
    (tmp_path / "exported").write_text(json.dumps({"deployment": state}))
    assert "was about to create storage-data" in up().stderr
    assert not any(call.startswith("refresh") for call in calls(tmp_path))


def test_a_job_that_runs_and_that_the_state_does_not_know_is_told(up: Up, cloud: Cloud) -> None:
    until_running(cloud, submit(cloud, "sleep 600", "train", run=2, stack="local"))
    assert "job train (run 2) is RUNNING, and stack local does not know it" in up().stderr


def test_where_the_state_is_kept_is_asked_of_pulumi_unless_the_environment_says_it(
    up: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PULUMI_BACKEND_URL")
    (tmp_path / "whoami").write_text(json.dumps({"url": f"file://{tmp_path}"}))
    file = lock(tmp_path, dead_process())

    up()

    assert calls(tmp_path)[0] == "whoami --json --non-interactive"
    assert not file.exists()


@pytest.mark.parametrize(
    ("arguments", "project", "refreshes"),
    [
        (["--refresh", "--yes"], "", True),
        (["-r"], "", True),
        (["-yr"], "", True),
        (["--refresh=false"], "options:\n  refresh: always\n", False),
        (["--yes"], "options: {refresh: always}\n", True),
        (["--yes"], "config:\n  refresh: always\n", False),
    ],
)
def test_an_up_that_refreshes_is_previewed_first(
    checkout: Path, up: Up, tmp_path: Path, arguments: list[str], project: str, refreshes: bool
) -> None:
    (checkout / "Pulumi.yaml").write_text(f"name: demo\nruntime: python\n{project}")
    assert up(*arguments).exit_code == 0
    calls = (tmp_path / "calls").read_text().splitlines()
    previews = [call for call in calls if call.startswith("preview --stack local --json")]
    assert [call.endswith("--refresh") for call in previews] == [True] * refreshes


Told = Callable[..., list[str]]


@pytest.fixture
def told(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    """What is told of stack `local` whose state holds the resources with these ids."""
    server = serve([JobService(cloud.store, cloud.jobs, cloud.scheduler), cloud.studies], 0)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")

    def tell(*ids: str) -> list[str]:
        said: list[str] = []
        where = StackRef(Path(), "demo", "local", PROJECT, "us-central1")
        resources = [{"urn": "of the stack itself"}, *({"id": id_} for id_ in ids)]
        report_orphaned_jobs(where, {"resources": resources}, said.append)
        return said

    yield tell
    server.stop(None).wait()


def test_a_service_that_does_not_answer_is_told_and_no_failure(
    told: Told, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("VERTEX_EMULATOR_HOST")
    monkeypatch.setenv("VT_LOCAL_HOME", str(tmp_path / "home"))
    [line] = told()
    assert line.startswith("it is not known whether jobs run that stack local does not know: ")
    assert "the local cloud does not run" in line


REF = StackRef(Path("/srv/checkout"), "demo", "dev", "acme-ml", "us-central1")


class Engine:
    """A ``pulumi`` that ends so; what it ran."""

    env: dict[str, str] = {}  # noqa: RUF012 - never changed

    def __init__(self, *codes: int, before: Any = None, after: Any = None) -> None:
        self.codes, self.deployments = list(codes), [before or {}, after or {}]
        self.ran: list[tuple[str, ...]] = []

    def backend_url(self) -> str:
        return "gs://state"

    def export_deployment(self, stack: str) -> Any:
        found = self.deployments.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def run_in_foreground(self, *arguments: str) -> int:
        self.ran.append(arguments)
        return self.codes.pop(0)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What each step answers, and the steps that were taken."""
    made = SimpleNamespace(dead=False, repairs=[], moved=[], taken=[])

    def take(name: str, answer: Callable[[], Any]) -> Callable[..., Any]:
        def step(*given: Any, **_: Any) -> Any:
            made.taken.append((name, *(each for each in given if isinstance(each, str))))
            return answer()

        return step

    monkeypatch.setattr(flow.locks, "clear_dead", take("locks", lambda: made.dead))
    monkeypatch.setattr(flow.attributes_file, "remove_truncated", take("file", lambda: None))
    monkeypatch.setattr(flow, "refused_repairs", take("repairs", lambda: made.repairs))
    monkeypatch.setattr(flow, "find_moved_jobs", take("moved", lambda: made.moved))
    monkeypatch.setattr(flow, "deployed_jobs", lambda deployment: deployment)
    monkeypatch.setattr(flow, "clear_settled", take("settled", lambda: 5))
    monkeypatch.setattr(flow, "report_orphaned_jobs", take("orphaned", lambda: None))
    monkeypatch.setattr(flow, "report_cancelled_jobs", take("cancelled", lambda: None))
    monkeypatch.setattr(flow.dataclasses, "replace", lambda pulumi, **_: pulumi)
    monkeypatch.setattr("vertex_training_cli.up.flow.refuse_if_lost", take("lost", lambda: None))
    return made


MADE = {"resources": [{"custom": True}]}


def bring_up(engine: Any, said: list[str], dead: list[str] | None = None) -> int:
    ended = dead if dead is not None else []
    return flow.bring_up(
        REF, engine, ["--yes"], said.append, on_dead_lock=lambda: ended.append("dead")
    )


def test_an_up_that_fails_is_told_and_nothing_is_looked_at_after_it(steps: SimpleNamespace) -> None:
    said: list[str] = []
    assert bring_up(Engine(255, before=MADE), said) == 255
    assert said == ["pulumi up ended with exit code 255"]
    assert [name for name, *_ in steps.taken][-1] == "cancelled"


def test_what_is_refused_is_told_and_nothing_runs(steps: SimpleNamespace) -> None:
    steps.repairs, steps.moved = [Problem("a is lost")], [Problem("b moves")]
    said: list[str] = []
    engine = Engine()
    assert bring_up(engine, said) == 3
    assert said == ["dev is not deployed; nothing was changed.", "a is lost.", "b moves."]
    assert engine.ran == []


URN = "urn:pulumi:dev::p::pulumi-python:dynamic/vertex:CustomJob::training-"


def operation(name: str, kind: str = "creating") -> dict[str, Any]:
    return {"type": kind, "resource": {"urn": URN + name}}


def resource(name: str, **more: Any) -> dict[str, Any]:
    return {"urn": URN + name, **more}


def test_one_that_nobody_created_again_keeps_all_of_them() -> None:
    found = find_pending(
        {
            "resources": [resource("a"), resource("b", delete=True)],
            "pending_operations": [operation("a"), operation("b"), operation("gone")],
        }
    )
    assert found == PendingCreates((URN + "a",), (URN + "a",), (URN + "b", URN + "gone"))
    assert not found.clearable
    assert explanation(found, "dev") == (
        "a killed run was about to create training-b, training-gone, which this stack does not "
        "have now: it may exist all the same, so the note of it stays. Look (`vt jobs list --stack "
        "dev`, `vt models list`), remove what is there, then: "
        "pulumi refresh --stack dev --clear-pending-creates"
    )
