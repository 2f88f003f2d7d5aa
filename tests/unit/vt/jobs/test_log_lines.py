"""Which logs ``vt jobs logs`` reads, and the form of each line that it prints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob, JobState

from vertex_training.customjob.google.logs import LogLine
from vertex_training.errors import CommandError
from vertex_training_cli.jobs import log as job_log

PLACE = "projects/1/locations/us-central1"


class Logs:
    """Logs by job id; what was asked of them."""

    def __init__(self, **lines: list[LogLine]) -> None:
        self.lines_of, self.asked = lines, list[Any]()

    def lines(self, number: str, replica: str | None) -> list[LogLine]:
        self.asked.append(("lines", number, replica))
        return self.lines_of.get(f"n{number}", [])

    def tail(self, number: str, count: int, replica: str | None) -> list[LogLine]:
        self.asked.append(("tail", number, count, replica))
        return self.lines_of.get(f"n{number}", [])[-count:]

    def follow(self, number: str, replica: str | None, *, ended: Any, pause: Any) -> Iterator[Any]:
        self.asked.append(("follow", number, replica, ended()))
        pause()
        yield from self.lines_of.get(f"n{number}", [])


def line(text: str, replica: str = "workerpool0-0") -> LogLine:
    return LogLine("2026-11-21T10:00:00Z", replica, "INFO", text)


POOL = {"replica_count": 1, "machine_spec": {"machine_type": "n1-standard-4"}}


def job(*pools: dict[str, Any]) -> CustomJob:
    return CustomJob(
        name=f"{PLACE}/customJobs/7", display_name="train", state=JobState.JOB_STATE_RUNNING,
        job_spec={"worker_pool_specs": list(pools) or [POOL]},
    )  # fmt: skip


TUNING = HyperparameterTuningJob(
    name=f"{PLACE}/hyperparameterTuningJobs/9", display_name="search",
    state=JobState.JOB_STATE_RUNNING, trial_job_spec={"worker_pool_specs": [POOL]},
)  # fmt: skip


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Shows a log; the lines, what was said, what was asked, and the pauses."""

    def show(logs: Logs, found: Any, *, local: bool = False, **options: Any) -> Any:
        pauses: list[float] = []
        said: list[str] = []
        monkeypatch.setattr(job_log.logs, "connect", lambda _: logs)
        monkeypatch.setattr(job_log.time, "sleep", pauses.append)
        ended = CustomJob(state=JobState.JOB_STATE_SUCCEEDED)
        jobs: Any = SimpleNamespace(
            ref=SimpleNamespace(project="acme", is_local=local),
            log_id=lambda each: each.name.rpartition("/")[2],
            get_if_exists=lambda name: None if name.endswith("/gone") else ended,
        )
        usual = {"replica": None, "follow": False, "tail": None, "as_json": False}
        job_log.show(jobs, found, log=said.append, **usual | options)
        return capsys.readouterr().out.splitlines(), said, logs.asked, pauses

    return show


def test_a_job_of_one_replica_has_its_lines_alone(shown) -> None:
    logs = Logs(n7=[line("one"), line("two\x1b[2J")])
    assert shown(logs, job()) == (["one", "two\ufffd[2J"], [], [("lines", "7", None)], [])


def test_a_line_that_is_no_text_is_told_all_the_same(shown) -> None:
    assert shown(Logs(n7=[line("a\udcffb")]), job())[0] == ["a\ufffdb"]


def test_a_job_whose_record_is_gone_has_ended(shown) -> None:
    found = job()
    found.name = f"{PLACE}/customJobs/gone"
    assert shown(Logs(), found, follow=True)[2] == [("follow", "gone", None, True)]


def test_lines_of_several_replicas_name_theirs_unless_one_was_chosen(shown) -> None:
    pools = job({**POOL, "replica_count": 2})
    logs = Logs(n7=[line("one"), line("two", "workerpool0-1")])
    told, *_ = shown(logs, pools)
    assert told == ["workerpool0-0 | one", "workerpool0-1 | two"]
    told, _, asked, _ = shown(Logs(n7=[line("one")]), pools, replica="workerpool0-1")
    assert (told, asked) == (["one"], [("lines", "7", "workerpool0-1")])


def test_the_end_of_a_log_and_one_that_is_followed(shown) -> None:
    logs = Logs(n7=[line(str(number)) for number in range(5)])
    told, _, asked, pauses = shown(logs, job(), tail=2, follow=True)
    assert (told, asked, pauses) == (["3", "4"], [("tail", "7", 2, None)], [])
    for local, pause in ((False, 5.0), (True, 0.5)):
        _, _, asked, pauses = shown(Logs(), job(), follow=True, local=local)
        assert (asked, pauses) == ([("follow", "7", None, True)], [pause])


def test_only_a_log_that_is_followed_on_a_terminal_has_a_curve_below_it(
    shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    curves: list[Any] = []

    @contextmanager
    def curve(jobs: Any, chosen: Any) -> Iterator[None]:
        curves.append((jobs.ref.project, chosen))
        yield

    monkeypatch.setattr(job_log.live, "curve_of", curve)
    found, logs = job(), Logs(n7=[line("one")])
    monkeypatch.setattr(job_log.sys.stdout, "isatty", lambda: True, raising=False)
    shown(logs, found)
    shown(logs, found, follow=True, as_json=True)
    assert curves == []
    assert shown(Logs(n7=[line("one")]), found, follow=True, replica="workerpool0-0")[:3] == (
        ["one"], [], [("follow", "7", "workerpool0-0", True)],
    )  # fmt: skip
    assert curves == [("acme", [found])]


def test_a_line_is_json_with_all_its_parts(shown) -> None:
    told, *_ = shown(Logs(n7=[line("a\tb")]), job(), as_json=True)
    assert told == [
        '{"time": "2026-11-21T10:00:00Z", "replica": "workerpool0-0", "severity": "INFO", '
        '"text": "a\\tb"}'
    ]


def test_a_secret_is_redacted_line_by_line_for_each_replica(shown) -> None:
    begin, end = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
    lines = [
        line(begin), line("other", "workerpool0-1"), line("QUJD"), line(end), line("after"),
        line("token hf_" + "a1B2" * 9),
    ]  # fmt: skip
    told, *_ = shown(Logs(n7=lines), job({**POOL, "replica_count": 2}))
    assert "QUJD" not in "\n".join(told)
    assert told[1:] == [
        "workerpool0-1 | other", *told[2:-2], "workerpool0-0 | after",
        "workerpool0-0 | token [secret]",
    ]  # fmt: skip


def test_a_log_without_a_line_is_said(shown) -> None:
    told, said, *_ = shown(Logs(), job())
    assert (told, said) == ([], ["nothing is in the log of job train, which is RUNNING"])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"trial": "1"}, "job train has no trials. Hint: leave --trial out."),
        ({"replica": "workerpool1-0"},
         "job train has no replica 'workerpool1-0'. Hint: it has: workerpool0-0."),
    ],
)  # fmt: skip
def test_what_a_job_does_not_have_is_refused(shown, options: dict[str, str], text: str) -> None:
    with pytest.raises(CommandError) as refused:
        shown(Logs(), job(), **options)
    assert str(refused.value) == text


@pytest.fixture
def tuning(monkeypatch: pytest.MonkeyPatch) -> HyperparameterTuningJob:
    """A tuning job of four trials, of which one has not begun."""
    trials = [
        {"id": "2", "state": "ACTIVE", "customJob": f"{PLACE}/customJobs/20"},
        {"id": "10", "state": "STOPPING", "customJob": f"{PLACE}/customJobs/100"},
        {"id": "1", "state": "SUCCEEDED", "customJob": f"{PLACE}/customJobs/10"},
        {"id": "3", "state": "REQUESTED"},
    ]
    monkeypatch.setattr(job_log.view, "message", lambda _: {"trials": trials})
    return TUNING


def test_the_logs_of_trials_come_in_their_order_and_name_them(shown, tuning: Any) -> None:
    logs = Logs(n10=[line("a")], n20=[line("b")], n100=[line("c")])
    told, _, asked, _ = shown(logs, tuning)
    assert told == ["trial 1 | a", "trial 2 | b", "trial 10 | c"]
    assert [number for _, number, _ in asked] == ["10", "20", "100"]
    told, *_ = shown(Logs(n20=[line("b")]), tuning, trial="2")
    assert told == ["b"]
    told, *_ = shown(Logs(n10=[line("a")]), tuning, as_json=True)
    assert told[0].endswith('"text": "a", "trial": "1"}')


def test_several_trials_are_not_followed_at_once(shown, tuning: Any) -> None:
    with pytest.raises(CommandError) as refused:
        shown(Logs(), tuning, follow=True)
    assert str(refused.value) == (
        "the logs of several trials cannot be followed at once. Hint: choose one with --trial: "
        "10, 2, 3."
    )
    _, _, asked, _ = shown(Logs(), tuning, follow=True, trial="2")
    assert asked == [("follow", "20", None, True)]
