"""What each step of a run keeps: results, calls, lost answers, records of events and of jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training.catalog.resource_types import JOB
from vertex_training.customjob.google import job_service
from vertex_training.errors import CommandError
from vertex_training_cli.drift import rest
from vertex_training_cli.drift.findings import Drift, DriftOutcome, ResourceDifference
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.preflight.answers import Verdict, question
from vertex_training_cli.verify import steps
from vertex_training_cli.verify.steps import Run


class Engine:
    """A ``pulumi`` with deployments to export, and an environment."""

    def __init__(self) -> None:
        self.deployments: list[Any] = []

    def export_deployment(self, stack: str) -> Any:
        assert stack == "first"
        return self.deployments.pop(0) if len(self.deployments) > 1 else self.deployments[0]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that a test turns; pauses turn it, too."""
    made = SimpleNamespace(now=100.0, pauses=[])

    def sleep(seconds: float) -> None:
        made.pauses.append(seconds)
        made.now += seconds

    monkeypatch.setattr(steps.time, "monotonic", lambda: made.now)
    monkeypatch.setattr(steps.time, "sleep", sleep)
    return made


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def run(tmp_path: Path, clock: SimpleNamespace, said: list[str]) -> Run:
    ref = StackRef(tmp_path, "p", "first", "local-first", "us-central1")
    subject: Any = SimpleNamespace(job="train", timeout=60.0)
    pulumi: Any = Engine()
    return Run(ref, pulumi, subject, tmp_path, lambda t: t.replace("acme", "P"), said.append, "7a")


def test_calls_and_lost_answers_of_a_step_are_kept(run: Run) -> None:
    with run.step("preflight"):
        [call], [retry] = rest.LISTENERS, job_service.RETRY_LISTENERS
        call("GET", "https://iam.example.org/acme/x?y=z", 200, {"name": "a"})
        call("GET", "https://iam.example.org/acme/x?y=q", 200, {"size": 1})
        call("GET", "https://iam.example.org/acme/x", 403, {"error": "no"})
        call("PUT", "https://iam.example.org/acme/x", 400, None)
        retry("get", ValueError("acme UNAVAILABLE"))
        retry("get", ValueError("acme UNAVAILABLE"))
        retry("create", ValueError("later"))
    assert (rest.LISTENERS, job_service.RETRY_LISTENERS) == ([], [])
    found = run.observed["preflight"]
    del found["result"]
    assert found == {
        "call GET iam.example.org/P/x": {
            "fields": ["name: text", "size: number"], "refused": ["403"],
        },
        "call PUT iam.example.org/P/x": {"refused": ["400"]},
        "lost answers": {"errors": ["create: later", "get: UNAVAILABLE: P UNAVAILABLE"]},
    }  # fmt: skip
    assert run.records == {
        "preflight-calls": [
            ["GET", "https://iam.example.org/acme/x?y=z", 200, {"name": "a"}],
            ["GET", "https://iam.example.org/acme/x?y=q", 200, {"size": 1}],
            ["GET", "https://iam.example.org/acme/x", 403, {"error": "no"}],
            ["PUT", "https://iam.example.org/acme/x", 400, None],
        ]
    }


def told(severity: str, message: str) -> dict[str, Any]:
    return {"diagnosticEvent": {"severity": severity, "message": message}}


CREATED = {"resOutputsEvent": {"metadata": {"op": "create", "type": "a:b:C", "new": None}}}


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """``pulumi up`` and ``destroy`` that log these events, and end so; what they were given."""

    def log(*events: Any, code: int = 0) -> list[Any]:
        given: list[Any] = []

        def command(_ref: Any, pulumi: Any, arguments: list[str], *_: Any, **more: Any) -> int:
            file = arguments.index("--event-log") + 1
            Path(arguments[file]).write_text("".join(f"{json.dumps(each)}\n" for each in events))
            given.append((arguments[: file - 1], arguments[file + 1 :], dict(pulumi.env), more))
            return code

        monkeypatch.setattr(steps, "bring_up", command)
        monkeypatch.setattr(steps, "destroy_stack", command)
        monkeypatch.setattr(steps, "up_options", lambda *_: ["--policy-pack-config", "x"])
        return given

    return log


@pytest.fixture
def pulumi(run: Run) -> Run:
    """A run whose engine is a command line with an environment."""
    from vertex_training_cli.engine.pulumi_cli import PulumiCli

    run.pulumi = PulumiCli(run.ref.root, {"A": "b"})
    return run


def test_an_up_keeps_resources_messages_and_events(
    pulumi: Run, engine: Callable[..., list[Any]]
) -> None:
    given = engine(CREATED, told("debug", "x"), told("warning", "odd"))
    steps.up(pulumi)
    [(before, after, env, more)] = given
    assert (before, after) == (["--yes", "--skip-preview"], ["--policy-pack-config", "x"])
    assert env == {"A": "b", "PULUMI_DEBUG_COMMANDS": "true"}
    assert more["on_dead_lock"]() is None
    assert pulumi.observed["up"] == {
        "result": {"warnings": ["odd"], "seconds": 0.0},
        "resource a:b:C": {"operations": ["create"], "outputs": []},
    }
    assert pulumi.records == {"up-events": [CREATED, told("warning", "odd")]}
    steps.up_again(pulumi)
    assert pulumi.observed["up-again"] == {
        "result": {"warnings": ["odd"], "changes": ["create a:b:C"], "seconds": 0.0}
    }


def test_an_engine_that_failed_ends_the_step_with_what_it_said(
    pulumi: Run, engine: Callable[..., list[Any]]
) -> None:
    engine(told("error", "Error 403: no"), code=255)
    with pytest.raises(CommandError) as failed:
        steps.up(pulumi)
    assert str(failed.value) == "up ended with exit code 255."
    assert pulumi.observed["up"]["result"] == {
        "errors": ["403: Error 403: no"], "failed": True, "seconds": 0.0,
    }  # fmt: skip


def resource(id_: str, type_: str = JOB, **more: Any) -> dict[str, Any]:
    return {"id": id_, "type": type_, "custom": True, **more}


@pytest.mark.parametrize(
    ("resources", "name"),
    [
        ([resource("j"), resource("b", "a:b:C")], "j"),
        ([resource("j"), resource("old", delete=True)], "j"),
        ([], 0),
        (None, 0),
        ([resource("j"), resource("k")], 2),
    ],
)
def test_the_job_of_a_run_is_the_one_that_the_state_has(
    run: Run, resources: Any, name: str | int
) -> None:
    run.pulumi.deployments = [{"resources": resources}]  # type: ignore[attr-defined]
    if isinstance(name, str):
        assert run.job() == name
    else:
        with pytest.raises(CommandError, match=f"the state has {name} jobs, and not one"):
            run.job()


class Polled:
    """Jobs by name, in these states, one a look; the last one stays."""

    def __init__(self, **states: list[str]) -> None:
        self.states = states

    def get(self, name: str) -> Any:
        found = self.states[name]
        state = found.pop(0) if len(found) > 1 else found[0]
        return SimpleNamespace(name=name, state=SimpleNamespace(name=f"JOB_STATE_{state}"))

    def list(self) -> list[Any]:
        return [self.get(name) for name in self.states]


@pytest.fixture
def polled(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Polled]:
    def poll(**states: list[str]) -> Polled:
        made = Polled(**states)
        monkeypatch.setattr(steps, "Jobs", lambda _: made)
        monkeypatch.setattr(steps, "stack_jobs", lambda _: made.list())
        monkeypatch.setattr(steps.view, "message", lambda job: {"state": job.state.name})
        return made

    return poll


def test_a_job_that_goes_on_for_too_long_ends_the_step(
    run: Run, polled: Callable[..., Polled], clock: SimpleNamespace
) -> None:
    run.pulumi.deployments = [{"resources": [resource("j")]}]  # type: ignore[attr-defined]
    polled(j=["RUNNING"])
    with pytest.raises(CommandError, match="job first is RUNNING for too long"):
        steps.train(run)
    assert len(clock.pauses) == 1861  # its timeout of 60 s, half an hour, and the look after it
    assert run.observed["job"]["job first"]["states"] == ["RUNNING"]


def test_what_differs_from_the_declaration_is_told_and_the_run_goes_on(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    differences = tuple(ResourceDifference(op, "n", "t", "") for op in ("update", "create"))
    found = Drift("first", DriftOutcome.DRIFTED, differences, errors=("acme 403",))
    monkeypatch.setattr(steps, "compare_stack", lambda stack: found if stack == "first" else None)
    steps.drift(run)
    assert run.observed["drift"] == {
        "result": {
            "outcome": "DRIFTED", "differences": ["create t", "update t"], "errors": ["P 403"],
            "seconds": 0.0,
        }
    }  # fmt: skip
    assert run.records["drift"]["outcome"] == "drifted"

    def refuse(_: str) -> None:
        raise CommandError("no")

    monkeypatch.setattr(steps, "compare_stack", refuse)
    steps.drift(run)
    assert run.observed["drift"]["result"]["failed"] is True


def test_a_preflight_keeps_each_answer_and_says_how_many_there_are(
    run: Run, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = question("s", "of acme")
    answers = [asked.ok("yes"), asked.refused("no", "m", "n"), asked.unknown("?")]
    monkeypatch.setattr(steps.context, "connect", lambda _: ("made", answers[:1]))
    monkeypatch.setattr(steps.parts, "ask_all", lambda made: answers[1:] if made == "made" else [])
    steps.preflight(run)
    found = run.observed["preflight"]
    assert found.pop("result") == {"seconds": 0.0}
    assert found == {"asked : of P": {"refused": ["refused", "unknown"]}}
    assert [each["answer"] for each in run.records["preflight"]] == ["yes", "no", "?"]
    assert [each["verdict"] for each in run.records["preflight"]] == [
        Verdict.OK, Verdict.REFUSED, Verdict.UNKNOWN,
    ]  # fmt: skip
    assert said[-1].startswith("preflight: ")


def test_an_edit_replaces_a_job_that_runs_by_one_that_is_new(
    pulumi: Run, engine: Callable[..., list[Any]], polled: Callable[..., Polled],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    given = engine(CREATED)
    jobs = polled(a=["QUEUED", "RUNNING", "CANCELLED"], b=["RUNNING"])
    names = ["a", "b"]
    monkeypatch.setattr(Run, "job", lambda _: names.pop(0))
    listed = [[], list(jobs.states)]
    monkeypatch.setattr(
        steps, "stack_jobs", lambda _: [SimpleNamespace(name=n) for n in listed.pop(0)]
    )
    monkeypatch.setattr(type(pulumi.pulumi), "export_deployment", lambda *_: {"of": "first"})
    written: list[Any] = []

    def write_edit(_ref: Any, folder: Path, job: str, name: str, deployment: Any) -> Path:
        written.append((folder, job, name, deployment))
        return Path(f"/srv/{name}")

    monkeypatch.setattr(steps.edits, "write_edit", write_edit)
    assert steps.edit(pulumi) == "b"
    assert written == [
        (pulumi.folder, "train", f"train-{name}-7a", {"of": "first"})
        for name in ("replaced", "replacing")
    ]
    assert [words[:2] for _, words, *_ in given] == [
        ["--config-file", "/srv/train-replaced-7a"], ["--config-file", "/srv/train-replacing-7a"],
    ]  # fmt: skip
    assert pulumi.observed["edit"] == {
        "result": {"changes": ["create a:b:C"], "new jobs": 2, "seconds": 0.0},
        "job replaced": {
            "states": ["QUEUED", "RUNNING", "CANCELLED"], "fields": ["state: text"],
        },
        "job replacing": {"states": ["RUNNING"], "fields": ["state: text"]},
    }  # fmt: skip


def test_a_destruction_counts_what_is_left(
    pulumi: Run, engine: Callable[..., list[Any]], polled: Callable[..., Polled],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    given = engine()
    polled(a=["CANCELLED"], b=["CANCELLING", "CANCELLED"])
    left = [resource("x", "z:y:X"), resource("y", "a:b:C"), {"type": "stack", "custom": False}]
    monkeypatch.setattr(type(pulumi.pulumi), "export_deployment", lambda *_: {"resources": left})
    pulumi.observed["edit"] = {}
    steps.destroy(pulumi, "b")
    assert given[0][3]["confirmed"]() is True
    assert pulumi.observed == {
        "edit": {"job replacing": {"states": ["CANCELLED"], "fields": ["state: text"]}},
        "destroy": {
            "result": {"left": ["a:b:C", "z:y:X"], "live jobs": 1, "seconds": 0.0},
        },
    }
    monkeypatch.setattr(type(pulumi.pulumi), "export_deployment", lambda *_: {})
    steps.destroy(pulumi)
    assert pulumi.observed["destroy"]["result"]["left"] == []


def test_the_steps_of_a_run_are_in_their_order(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [each.__name__ for each in steps.STEPS]
    assert names == ["preflight", "up", "train", "up_again", "drift"]
    done: list[str] = []
    made = [lambda _, name=name: done.append(name) for name in names]
    monkeypatch.setattr(steps, "STEPS", made)
    monkeypatch.setattr(steps, "edit", lambda _: "last")
    assert (steps.run_steps(run), done) == ("last", names)
