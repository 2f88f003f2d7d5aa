"""`vt jobs` through the official clients against services in this process."""

from __future__ import annotations

import json
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
from tests.unit.localcloud.conftest import PROJECT, Cloud, command_job
from tests.unit.vt.jobs.submitting import done, submit, until_running
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


def test_the_list_is_narrowed_by_state_label_and_number(vt: Vt, cloud: Cloud) -> None:
    good = done(cloud, submit(cloud, "true", "good"))
    bad = done(cloud, submit(cloud, "false", "bad"))
    as_json = ("--format", "json")
    assert ids(vt("list", "--state", "failed", *as_json)) == [bad]
    assert ids(vt("list", "--state", "FAILED", "--state", "succeeded", *as_json)) == [bad, good]
    assert ids(vt("list", "--label", "vt-job=good", *as_json)) == [good]
    short = vt("list", "--limit", "1")
    assert "1 older jobs are not shown" in short.stderr
    assert good not in short.stdout
    assert "no matching jobs" in vt("list", "--state", "paused").stderr
    wide = {"COLUMNS": "150"}
    wrong = vt("list", "--state", "runing", code=2, env=wide).stderr
    assert "unknown state 'runing': did you mean 'running'?" in wrong
    assert (
        "--follow and --tail exclude each other"
        in vt("logs", "good", "-f", "--tail", "3", code=2).output
    )


def test_only_a_confirmed_cancellation_cancels_a_job(
    vt: Vt, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = until_running(cloud, submit(cloud, "sleep 600", "long"))
    told = "without a terminal, a cancellation requires --yes. No job was cancelled."
    assert told in vt("cancel", "long", code=2).stderr
    stdin = "typer.testing._NamedTextIOWrapper.isatty"
    monkeypatch.setattr(stdin, lambda stream: stream.name == "<stdin>")
    asked = vt("cancel", "long", input="n\n", code=1).stderr
    assert f"Cancel long ({long})?" in asked
    assert "no job was cancelled" in asked
    until_running(cloud, long)
    vt("cancel", "long", input="y\n")
    assert "job long: CANCELLED" in vt("wait", done(cloud, long), code=1).stderr


def test_a_job_that_is_not_there_is_said_with_what_there_is(vt: Vt, cloud: Cloud) -> None:
    done(cloud, submit(cloud, "true", "titanic"))
    told = vt("show", "titanik", code=1).stderr
    assert told == (
        "vt jobs show: stack local has not submitted a job 'titanik'. Hint: did you mean "
        "'titanic'?\n"
    )
    assert "customJobs/123 does not exist" in vt("show", "123", code=1).stderr
    assert (
        "is not the resource name of a job" in vt("cancel", "projects/p/x", "--yes", code=1).stderr
    )


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
    assert "before the deadline of 1s" in vt("wait", "long", "--deadline", "1s", code=124).stderr
    cloud.jobs.move(long, JobState.CANCELLING)
    cloud.scheduler.cancel(long)


def test_a_right_that_is_missing_is_named(vt: Vt, cloud: Cloud) -> None:
    cloud.store.delete(SERVICE, f"{PROJECT}/aiplatform.googleapis.com")
    told = vt("list", code=1).stderr
    assert "PERMISSION_DENIED" in told
    assert "roles/aiplatform.viewer" in told


def test_a_stack_file_that_cannot_be_read_is_one_line(vt: Vt) -> None:
    Path("Pulumi.bytes.yaml").write_bytes(b"config: \xff\n")
    Path("Pulumi.folder.yaml").mkdir()
    assert "it is not valid UTF-8" in vt("list", stack="bytes", code=1).stderr
    assert "no file Pulumi.folder.yaml in" in vt("list", stack="folder", code=2).stderr


def test_progress_at_a_terminal_shows_brackets_in_a_name_as_they_are(vt: Vt, cloud: Cloud) -> None:
    body = {**command_job("true"), "display_name": "a [bold]job[/]"}
    job_id = done(cloud, cloud.submit(body).name.rpartition("/")[2])
    terminal = {"TERM": "xterm", "FORCE_COLOR": "1", "COLUMNS": "200"}
    assert "job a [bold]job[/]: SUCCEEDED" in vt("wait", job_id, env=terminal).stderr
