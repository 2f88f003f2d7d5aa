"""``vt local up`` ends with what became of each job, and with an exit code that follows from it."""

from __future__ import annotations

import fcntl
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from localgcp import lifecycle
from localgcp.errors import LocalCloudError
from localgcp.home import Home
from localgcp.runner.joblog import log_path
from localgcp.server_info import ServerInfo
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.unit.localcloud.conftest import free_port
from vertex_training_cli.cli import app
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.local import up
from vertex_training_cli.local.commands import report
from vertex_training_cli.local.results import StackJob
from vertex_training_cli.local.up import watch

TIME = "2026-11-21T10:00:00.000000Z"
NAME = "projects/1/locations/us-central1/customJobs/"
STACK = "config: {gcp:project: local-x, gcp:region: us-central1}\n"
Up = Callable[..., int]


@pytest.fixture
def home(home: Home) -> Home:
    """A home whose checkout is a small project."""
    checkout = home.root / "checkout"
    checkout.mkdir()
    (checkout / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    (checkout / "Pulumi.local.yaml").write_text(STACK)
    return replace(home, repo=checkout)


@pytest.fixture
def run(home: Home, monkeypatch: pytest.MonkeyPatch) -> Up:
    """``vt local up`` after an engine that ended with ``code`` and left these jobs.

    The record of a job without a state was deleted.
    """
    info = ServerInfo(4242, 2, free_port(), TIME)
    monkeypatch.setattr(lifecycle, "start", lambda _home, _report: info)
    monkeypatch.setattr(StackRef, "connect_clients", lambda _ref: None)

    def run_with(*states: JobState | None, code: int = 0, wait: bool = False) -> int:
        jobs = JobTable(home.database)
        for number, state in enumerate(states, 1):
            if state:
                jobs.insert(_record(str(number), state))
        _write_state(home, len(states))
        monkeypatch.setattr(up, "bring_up", lambda *_given, **_options: code)
        return up.run(home, "local", wait=wait, report=print)

    return run_with


def test_an_engine_that_failed_gives_the_exit_code_and_no_summary(
    run: Up, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(JobState.FAILED, code=7) == 7
    assert "RESOURCES" not in capsys.readouterr().out


@pytest.mark.parametrize("wait", [False, True])
def test_a_job_whose_record_was_deleted_is_named_and_is_no_failure(
    run: Up, capsys: pytest.CaptureFixture[str], wait: bool
) -> None:
    assert run(None, JobState.SUCCEEDED, wait=wait) == 0

    summary = capsys.readouterr().out.partition("RESOURCES")[2]
    assert "its record was deleted" in summary.partition("job-2")[0].partition("job-1")[2]


def _record(job_id: str, state: JobState) -> JobRecord:
    error = (1, "exit code 3") if state is JobState.FAILED else (None, None)
    return JobRecord(job_id, "local-x", "1", "us-central1", "train", {}, {}, state, TIME, TIME,
                     TIME, TIME, *error)  # fmt: skip


def _write_state(home: Home, count: int) -> None:
    names = {f"job-{number}": {"name": f"{NAME}{number}"} for number in range(1, count + 1)}
    stack = {"urn": "urn:pulumi:local::demo::pulumi:pulumi:Stack::demo-local", "custom": False,
             "type": "pulumi:pulumi:Stack", "outputs": {"jobs": names}}  # fmt: skip
    jobs = [
        {"urn": f"urn:pulumi:local::demo::x:y:CustomJob::{name}", "custom": True,
         "type": "x:y:CustomJob", "id": output["name"]}
        for name, output in names.items()
    ]  # fmt: skip
    folder = home.pulumi / ".pulumi" / "stacks" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    state = {"checkpoint": {"latest": {"resources": [stack, *jobs]}}}
    (folder / "local.json").write_text(json.dumps(state))


@pytest.fixture
def asked(monkeypatch):
    """What the flow is started with; its exit code is 3."""
    calls = []

    def run(home, stack, *, wait, report, images=False):
        calls.append((stack, wait, images))
        return 3

    monkeypatch.setattr("vertex_training_cli.local.up.run", run)
    return calls


def test_endpoints_follow_the_jobs_in_a_stack_of_their_own(home, asked, monkeypatch):
    given, ups = [], []

    def run(found, stack, file, train, then, report):
        given.append((found, stack, file, report))
        train("s-endpoint")
        return then("s-endpoint") + 1

    def bring_up(found, stack, report):
        ups.append((found, stack, report))
        return 4

    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    monkeypatch.setattr("vertex_training_cli.local.endpoint_form.run", run)
    monkeypatch.setattr("vertex_training_cli.local.up._bring_up", bring_up)
    words = ["--stack", "s", "--endpoints", "added.yaml", "--no-wait"]
    assert CliRunner().invoke(app, ["local", "up", *words]).exit_code == 5
    [(found, *rest)] = given
    assert (found.root, *rest) == (home.root, "s", Path("added.yaml"), report)
    assert asked == [("s-endpoint", True, False)]
    assert ups == [(found, "s-endpoint", report)]


WANTED = [StackJob("titanic", "1")]
RUNNING = JobRecord("1", "local-x", "1", "us-central1", "train", {}, {}, JobState.RUNNING,
                    TIME, TIME, None, TIME, None, None)  # fmt: skip


class Terminal(io.StringIO):
    """Keeps what is written to a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal of 100 columns."""
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return Terminal()


@pytest.fixture
def jobs(home: Home) -> JobTable:
    """The records of a local cloud where one job runs."""
    table = JobTable(home.database)
    table.insert(RUNNING)
    return table


@pytest.fixture
def server(home: Home) -> Iterator[None]:
    """The lock and the file of a server that runs."""
    ServerInfo(4242, 2, 3, TIME).write(home.server_file)
    with home.server_lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def on_wait(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``on_wait(STEP, ...)``: a step at each wait between two looks, instead of the wait."""

    def set_steps(*steps: Callable[[], object]) -> None:
        rest = iter(steps)
        monkeypatch.setattr(
            "vertex_training_cli.local.up.time.sleep", lambda _seconds: next(rest)()
        )

    return set_steps


def write_log(home: Home, text: str) -> None:
    file = log_path(home, RUNNING.job_id, "workerpool0-0")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="")


@pytest.mark.usefixtures("server")
def test_without_a_terminal_each_state_of_a_job_is_one_line(
    home: Home,
    jobs: JobTable,
    on_wait: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    on_wait(lambda: None, lambda: jobs.move("1", JobState.SUCCEEDED))

    watch(home, jobs, WANTED)

    expected = ["job titanic (1): RUNNING", "job titanic (1): SUCCEEDED"]
    assert capsys.readouterr().out.splitlines() == expected


@pytest.mark.usefixtures("server")
def test_on_a_terminal_a_job_has_its_time_and_the_end_of_its_log(
    home: Home,
    jobs: JobTable,
    on_wait: Callable[..., None],
    terminal: Terminal,
) -> None:
    write_log(home, "".join(f"step {number}.\n" for number in range(1, 12)))
    on_wait(lambda: None, lambda: jobs.move("1", JobState.SUCCEEDED))

    with redirect_stdout(terminal):
        watch(home, jobs, WANTED)

    shown = terminal.getvalue()
    assert re.search(r"titanic  RUNNING  0:0\d\b", shown)
    assert re.findall(r"step \d+\.", shown)[-8:] == [f"step {n}." for n in range(4, 12)]
    assert "step 3." not in shown


def test_a_server_that_ends_before_its_jobs_is_an_error(home: Home, jobs: JobTable) -> None:
    with pytest.raises(LocalCloudError, match="the local cloud ended while 1 job"):
        watch(home, jobs, WANTED)
