"""Why a stack is not verified, before anything is made."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from tests.fixture_project import copy_project
from vertex_training.errors import ConfigError, OperatorError
from vertex_training_cli.cli import app
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs.service import Jobs
from vertex_training_cli.verify import refusals

REQUEST = "vt-request-id"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(copy_project(tmp_path))
    return tmp_path


def stack(root: Path, name: str = "first", /, **sections: Any) -> StackRef:
    """The fixture's local stack under a name of its own, with other sections."""
    content = yaml.safe_load((root / "Pulumi.local.yaml").read_text())
    content["config"] |= {f"vertex-training:{key}": value for key, value in sections.items()}
    (root / f"Pulumi.{name}.yaml").write_text(yaml.safe_dump(content))
    return stacks.find(name, root)


def job(state: str, request: str = "") -> Any:
    return SimpleNamespace(
        name="projects/1/locations/r/customJobs/7",
        state=SimpleNamespace(name=f"JOB_STATE_{state}"),
        labels={REQUEST: request},
    )


@pytest.mark.parametrize(
    ("name", "sections", "words"),
    [
        ("first", {"jobs": {}}, "has 0 jobs; a run takes one"),
        ("first", {"tuning": {"search": {"file": "jobs/titanic-tuning.yaml"}}}, "has 2 jobs"),
        ("first", {"registry": {"protect": True}}, "protects something"),
        ("my-prod", {}, "a stack of production"),
        ("production", {}, "a stack of production"),
        (
            "first",
            {"reservations": {"r": {"zone": "us-central1-a", "machineType": "n1-standard-4",
                                    "count": 1}}},
            "reserves machines",
        ),
    ],
)  # fmt: skip
def test_a_stack_that_is_none_to_throw_away_is_refused(
    root: Path, name: str, sections: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        refusals.read_subject(stack(root, name, **sections))
    assert words in " ".join(map(str, refused.value.problems))


def test_a_job_without_epochs_is_refused(root: Path) -> None:
    file = root / "jobs" / "titanic.yaml"
    file.write_text(file.read_text().replace("--epochs=200", "--quick"))
    with pytest.raises(ConfigError, match="no argument --epochs"):
        refusals.read_subject(stack(root))


def test_three_submissions_are_priced_and_more_than_the_limit_is_refused(root: Path) -> None:
    subject = refusals.read_subject(stack(root))
    assert subject.most_usd is not None
    assert subject.cost.worst_case is not None
    assert subject.most_usd == 3 * subject.cost.worst_case
    assert refusals.price_refusals(subject, subject.most_usd) == []
    [problem] = refusals.price_refusals(subject, subject.most_usd - 0.01)
    assert "$0.33 at most: 3 times titanic" in problem.what
    [problem] = refusals.price_refusals(subject, float("nan"))
    assert problem.what.endswith("--max-usd is $nan")


def test_a_job_without_a_price_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vertex_training.catalog.costs.hourly", lambda *_, **__: None)
    [problem] = refusals.price_refusals(refusals.read_subject(stack(root)), 1e9)
    assert "has no price" in problem.what


def test_live_jobs_are_refused_and_so_is_a_request_that_has_run(root: Path) -> None:
    ref = stack(root)
    subject = refusals.read_subject(ref)
    assert refusals.job_refusals(ref, subject, [job("SUCCEEDED", "another")]) == []
    [live] = refusals.job_refusals(ref, subject, [job("RUNNING"), job("FAILED")])
    assert "is RUNNING" in live.what
    [ended] = refusals.job_refusals(ref, subject, [job("SUCCEEDED", subject.request_id)])
    assert "raise jobs.titanic.run" in ended.hint


UNUSED = "403 Vertex AI API has not been used in project 1 before"
BUCKET = {"type": "gcp:storage/bucket:Bucket", "custom": True}


@pytest.mark.parametrize(
    ("text", "resources", "code", "told"),
    [
        (UNUSED, [], 2, ""),
        ("503 unavailable", [], 1, "503 unavailable"),
        (UNUSED, [BUCKET], 3, "stack first has 1 resources already."),
    ],
)
def test_unlisted_jobs_and_existing_resources_end_a_run_before_it_begins(
    root: Path, monkeypatch: pytest.MonkeyPatch, text: str, resources: list[Any], code: int,
    told: str,
) -> None:  # fmt: skip
    def unread(*_: object) -> None:
        raise OperatorError(text)

    stack(root)
    monkeypatch.setattr(StackRef, "deployment_environment", lambda *_: {})
    monkeypatch.setattr(StackRef, "connect_clients", lambda *_: None)
    monkeypatch.setattr(PulumiCli, "export_deployment", lambda *_: {"resources": resources})
    monkeypatch.setattr(Jobs, "__init__", unread)
    done = CliRunner().invoke(app, ["verify", "--stack", "first", "--max-usd", "5"])
    assert done.exit_code == code
    assert told in done.stderr
    assert ("refused; nothing was made." in done.stderr) == (code == 3)
