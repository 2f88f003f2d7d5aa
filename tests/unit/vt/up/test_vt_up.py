"""`vt up` with a `pulumi` that only writes down how it was called."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from localgcp.apis.server import serve
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import PROJECT, Cloud, wait_until
from tests.unit.vt.jobs.submitting import submit, until_running
from tests.unit.vt.review import plans
from vertex_training_cli.cli import app

PULUMI = """\
#!/bin/sh
echo "$*" >>{calls}
[ "$1" = "$FAILING" ] && exit 7
[ "$1 $2" = "stack export" ] && cat {exported}
[ "$1" = "whoami" ] && cat {whoami}
[ "$1" = "preview" ] && cat {preview}
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
    (tmp_path / "preview").touch()
    pulumi = tmp_path / "bin" / "pulumi"
    pulumi.parent.mkdir()
    pulumi.write_text(
        PULUMI.format(
            calls=tmp_path / "calls",
            exported=tmp_path / "exported",
            whoami=tmp_path / "whoami",
            preview=tmp_path / "preview",
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
    assert told == "vt up: pulumi is not on PATH. Hint: run `vt setup`.\n"


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

    assert "removed the lock of stack local, because process" in told
    assert not file.exists()
    wait_until(lambda: not orphan.exists() or not orphan.read_bytes())


def test_what_a_killed_run_had_begun_is_cleared_with_the_config_file_of_the_up(
    up: Up, tmp_path: Path
) -> None:
    pending = [{"type": "creating", "resource": {"urn": SETTLED}}]
    state = {"resources": [{"urn": SETTLED}], "pending_operations": pending}
    (tmp_path / "exported").write_text(json.dumps({"deployment": state}))
    told = up("--yes", "--config-file", "x.yaml").stderr
    assert "a killed run began to create storage-data" in told
    assert calls(tmp_path)[-1] == (
        "refresh --stack local --yes --skip-preview --non-interactive --clear-pending-creates "
        f"--config-file x.yaml --target {SETTLED}"
    )


def test_what_may_exist_all_the_same_is_told_and_not_cleared(up: Up, tmp_path: Path) -> None:
    pending = [{"type": "creating", "resource": {"urn": SETTLED}}]
    state = {"resources": [], "pending_operations": pending}
    (tmp_path / "exported").write_text(json.dumps({"deployment": state}))
    assert "a killed run may have created storage-data, which" in up().stderr
    assert not any(call.startswith("refresh") for call in calls(tmp_path))


def test_a_job_that_runs_and_that_the_state_does_not_know_is_told(up: Up, cloud: Cloud) -> None:
    until_running(cloud, submit(cloud, "sleep 600", "train", run=2, stack="local"))
    assert "job train (run 2) is RUNNING, but missing from the state of stack local" in up().stderr


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


def test_repair_that_would_fail_half_way_is_refused_before_it_begins(
    up: Up, tmp_path: Path
) -> None:
    gone = "snapshot 'clicks': gs://data/manifest.json was deleted"
    told = [plans.create(plans.BUCKET, "storage-data", name="d"), plans.said("error", gone)]
    events = plans.lines(*told, plans.summary("failed"))
    (tmp_path / "preview").write_text("\n".join(events) + "\n")
    refused = up("--refresh", "--yes", "--skip-preview", expect=3)
    assert "stack local was not deployed. Nothing was changed." in refused.output
    assert gone in refused.output
    assert "\nup " not in (tmp_path / "calls").read_text()
