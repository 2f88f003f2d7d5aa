"""``vt local up`` shows what its jobs do until they have ended."""

from __future__ import annotations

import fcntl
import io
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout

import pytest

from localgcp.errors import LocalCloudError
from localgcp.home import Home
from localgcp.runner import substitutes
from localgcp.runner.joblog import log_path
from localgcp.server_info import ServerInfo
from localgcp.vertex.records import JobRecord, JobState, JobTable
from vertex_training_cli.engine.stack_state import StackJob
from vertex_training_cli.local.watch import tail, watch

WANTED = [StackJob("titanic", "1")]
TIME = "2026-11-21T10:00:00.000000Z"
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
            "vertex_training_cli.local.watch.time.sleep", lambda _seconds: next(rest)()
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
def test_what_a_job_ran_on_otherwise_is_told_with_its_end(
    home: Home,
    jobs: JobTable,
    on_wait: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    (home.jobs / "1").mkdir(parents=True)
    substitutes.note(home.jobs / "1", "on this host, not in img")
    on_wait(lambda: jobs.move("1", JobState.SUCCEEDED))
    watch(home, jobs, WANTED)
    assert capsys.readouterr().out.splitlines() == [
        "job titanic (1): RUNNING",
        "job titanic (1): SUCCEEDED (on this host, not in img)",
    ]


@pytest.mark.usefixtures("server")
def test_the_log_of_a_job_that_failed_ends_what_is_shown(
    home: Home,
    jobs: JobTable,
    on_wait: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_log(home, "".join(f"step {number}\n" for number in range(1, 41)))
    on_wait(lambda: jobs.move("1", JobState.FAILED, error=(1, "exit code 1")))

    watch(home, jobs, WANTED)

    shown = capsys.readouterr().out.splitlines()
    assert shown[:3] == ["job titanic (1): RUNNING", "job titanic (1): FAILED", ""]
    assert shown[4:] == [f"step {number}" for number in range(21, 41)]


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


@pytest.mark.usefixtures("server")
def test_minutes_and_seconds_of_a_job_have_two_digits_after_the_colon(
    home: Home,
    jobs: JobTable,
    on_wait: Callable[..., None],
    terminal: Terminal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter([1000.0, 1000.0 + 125.9])
    monkeypatch.setattr(
        "vertex_training_cli.local.watch.time.monotonic", lambda: next(clock, 1125.9)
    )
    on_wait(lambda: jobs.move("1", JobState.SUCCEEDED))

    with redirect_stdout(terminal):
        watch(home, jobs, WANTED)

    assert "titanic  RUNNING  2:05" in terminal.getvalue()


def test_a_server_that_ends_before_its_jobs_is_an_error(home: Home, jobs: JobTable) -> None:
    with pytest.raises(LocalCloudError, match="the local cloud ended while 1 job"):
        watch(home, jobs, WANTED)


def test_a_job_without_a_record_is_not_waited_for(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    watch(home, JobTable(home.database), WANTED)

    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("text", "lines", "shown"),
    [
        ("a\nb\nc\n", 2, ["b", "c"]),
        ("a\n", 8, ["a"]),
        ("0 %\r50 %\r100 %\ndone\n", 8, ["100 %", "done"]),
        ("90 %\r100 %\r", 8, ["100 %"]),
        ("from Windows\r\n", 8, ["from Windows"]),
        ("", 8, []),
        ("x" * 20_000 + "\nend\n", 1, ["end"]),
    ],
)
def test_the_tail_of_a_log_is_its_last_lines_as_a_terminal_would_show_them(
    home: Home, text: str, lines: int, shown: list[str]
) -> None:
    write_log(home, text)

    assert tail(home, RUNNING, lines) == shown


def test_of_a_long_line_only_the_last_16000_bytes_are_read(home: Home) -> None:
    write_log(home, "x" * 20_000)

    assert tail(home, RUNNING, 8) == ["x" * 16_000]


def test_a_replica_that_wrote_nothing_has_no_tail(home: Home) -> None:
    assert tail(home, RUNNING, 8) == []
