"""How ``vt local logs`` finds a job, and how it follows what is written meanwhile."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from localgcp.errors import LocalCloudError
from localgcp.home import Home
from localgcp.runner.joblog import log_path
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.unit.localcloud.vertex.rows import job_row
from vertex_training_cli.local import joblogs


def job(number: str, display: str) -> JobRecord:
    return replace(job_row(number, {}), display_name=display)


#: Newest first, as they are listed.
JOBS = [job("3", "b"), job("2", "a"), job("1", "a")]


@pytest.mark.parametrize(
    ("wanted", "in_stack", "found"),
    [
        (None, (), "3"),
        ("b", (), "3"),
        ("a", (), "2"),
        ("1", (), "1"),
        (JOBS[2].name, (), "1"),
        ("train", ("1",), "1"),
        ("train", ("1", "2"), "2"),
        ("b", ("1",), "3"),
    ],
)
def test_a_job_is_the_newest_with_that_name(
    wanted: str | None, in_stack: tuple[str, ...], found: str
) -> None:
    assert joblogs.find_job(JOBS, wanted, in_stack).job_id == found


def test_a_job_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(LocalCloudError) as failed:
        joblogs.find_job(JOBS, "x", ())
    assert str(failed.value) == "there is no job 'x'. Hint: there are: a, b."
    with pytest.raises(LocalCloudError) as failed:
        joblogs.find_job(JOBS, "x", (), unnamed=("3",))
    assert str(failed.value) == "there is no job 'x'. Hint: there are: a."
    with pytest.raises(LocalCloudError) as failed:
        joblogs.find_job([], None, ())
    assert str(failed.value) == (
        "the local cloud has no job yet. Hint: `vt local up` submits the stack's."
    )


@pytest.mark.parametrize("replica", ["../x", "a/b", ".x", "/etc/passwd"])
def test_a_replica_is_a_name_and_no_path(home: Home, replica: str) -> None:
    with pytest.raises(LocalCloudError) as failed:
        joblogs.show(home, None, replica, follow=False)
    assert str(failed.value) == (f"{replica!r} is no name of a replica. Hint: write workerpool0-0.")


def put(home: Home, record: JobRecord, text: bytes, replica: str = "workerpool0-0") -> Path:
    JobTable(home.database).insert(record)
    path = log_path(home, record.job_id, replica)
    path.parent.mkdir(parents=True)
    path.write_bytes(text)
    return path


def test_a_log_that_is_not_there_names_the_logs_that_are(home: Home) -> None:
    path = put(home, job("1", "train"), b"", "workerpool1-0")
    (path.parent / "workerpool0-1.log").write_bytes(b"")
    (path.parent / "workerpool0-1.times").write_bytes(b"")
    with pytest.raises(LocalCloudError) as failed:
        joblogs.show(home, "train", "workerpool0-0", follow=False)
    assert str(failed.value).startswith(
        "job train (QUEUED) has no log of workerpool0-0; there is: workerpool0-1, workerpool1-0."
    )
    JobTable(home.database).insert(job("2", "other"))
    with pytest.raises(LocalCloudError) as failed:
        joblogs.show(home, "other", "workerpool0-0", follow=False)
    assert str(failed.value).startswith("job other (QUEUED) has no log of workerpool0-0 yet.")


def test_where_nothing_was_made_a_look_makes_nothing(home: Home) -> None:
    home.database.unlink(missing_ok=True)
    with pytest.raises(LocalCloudError) as failed:
        joblogs.show(home, "train", "workerpool0-0", follow=False)
    assert str(failed.value) == (
        "the local cloud has no job yet. Hint: `vt local up` submits the stack's."
    )
    assert not home.database.exists()


def test_the_newest_job_is_found_without_the_states_of_stacks(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joblogs, "job_ids_named", lambda *_: pytest.fail("a state was read"))
    put(home, replace(job("1", "train"), state=JobState.SUCCEEDED), b"all\n")
    joblogs.show(home, None, "workerpool0-0", follow=False)
    assert capsys.readouterr().out == "all\n"


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """What happens in each pause of one that follows, in turn."""
    happens: list[Callable[[], object]] = []
    seconds: list[float] = []

    def sleep(given: float) -> None:
        seconds.append(given)
        happens.pop(0)()

    monkeypatch.setattr(joblogs.time, "sleep", sleep)
    return happens


def stream(path: Path, states: list[str], *, follow: bool) -> None:
    def state() -> tuple[str, bool]:
        return (word := states.pop(0)), word == "DONE"

    joblogs._stream(path, "job x", "r", state, follow=follow)


def test_without_following_a_log_is_printed_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "r.log"
    log.write_bytes("a\x1b[2J\nhalf \u00e9".encode()[:-1])
    stream(log, ["RUNNING"], follow=False)
    assert capsys.readouterr().out == "a\ufffd[2J\nhalf \ufffd"


def test_following_goes_on_until_the_job_ended_and_reads_what_came_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], paused: list[Callable[[], object]]
) -> None:
    log = tmp_path / "r.log"

    def append(data: bytes) -> Callable[[], object]:
        def write() -> None:
            with log.open("ab") as file:
                file.write(data)

        return write

    paused += [append(b"one\ncaf\xc3"), append(b"\xa9\n"), append(b"end\xc3")]
    stream(log, ["QUEUED", "RUNNING", "RUNNING", "DONE"], follow=True)
    assert capsys.readouterr().out == "one\ncaf\u00e9\nend\ufffd"
    assert paused == []


def test_a_part_of_a_log_is_read_from_where_the_last_one_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "r.log"
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    assert joblogs._print_from(log, 5, decoder, final=False) == 5
    log.write_bytes(b"0123456")
    assert joblogs._print_from(log, 5, decoder, final=False) == 7
    assert capsys.readouterr().out == "56"


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED])
def test_one_that_follows_a_job_that_ended_waits_for_nothing(
    home: Home, capsys: pytest.CaptureFixture[str], paused: list[object], state: JobState
) -> None:
    put(home, replace(job("1", "train"), state=state), b"all\n")
    joblogs.show(home, "train", "workerpool0-0", follow=True)
    assert capsys.readouterr().out == "all\n"


def test_one_that_follows_ends_when_the_record_is_deleted(
    home: Home, capsys: pytest.CaptureFixture[str], paused: list[Callable[[], object]]
) -> None:
    put(home, replace(job("1", "train"), state=JobState.RUNNING), b"all\n")
    paused.append(lambda: JobTable(home.database).delete("1"))
    joblogs.show(home, "train", "workerpool0-0", follow=True)
    assert (capsys.readouterr().out, paused) == ("all\n", [])
