"""Reading an environment's file, and the messages about mistakes in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pulumi
import pytest

from vertex_training.errors import ConfigError, Problem
from vertex_training.foundation import config, program
from vertex_training.foundation.settings import Settings

GITHUB = {"owner": "octo-org", "ownerId": "65", "repository": "octo-repo", "repositoryId": "74"}
GOOD: dict[str, Any] = {
    "stack": "prod",
    "project": "acme-ml-prod",
    "region": "us-central1",
    "projectNumber": "109876543210",
    "github": GITHUB,
}


def problems(**changes: Any) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        config.parse(GOOD | changes)
    return list(caught.value.problems)


@pytest.mark.parametrize(
    ("changes", "where", "says"),
    [
        ({"githb": {}}, "vertex-training-bootstrap:githb", "did you mean 'github'?"),
        ({"github": GITHUB | {"owner_id": "65"}}, "github.owner_id", "did you mean 'ownerId'?"),
        ({"github": GITHUB | {"ownerId": "octo-org"}}, "github.ownerId", '(got "octo-org")'),
        ({"github": {}}, "github.repositoryId", "missing"),
        ({"project": "Acme"}, "gcp:project", '(got "Acme")'),
        ({"state": {"softDeleteDays": 3}}, "state.softDeleteDays", "greater than or equal to 7"),
        ({"rotationDays": 1}, "rotationDays", "greater than or equal to 2"),
        ({"planReads": ["control"]}, "planReads", "control cannot be listed"),
        ({"labels": {"Team": "ml"}}, "labels.Team", "must be 1 to 63 characters"),
        ({"datasets": ["acme.clicks"]}, "datasets[0]", "clicks, without its project"),
        ({"datasets": ["x"] * 11}, "datasets", "at most 10"),
        ({"state": {"bucket": "a"}}, "state.bucket", '(got "a")'),
    ],
)
def test_a_mistake_is_reported_with_location_value_and_hint(
    changes: dict[str, Any], where: str, says: str
) -> None:
    lines = [str(problem) for problem in problems(**changes)]
    assert any(where in line and says in line for line in lines), lines
    assert all(line.startswith("Pulumi.prod.yaml: ") for line in lines)


def test_all_mistakes_are_reported_at_once() -> None:
    assert len(problems(region="mars", github={"owner": "-"}, planReads=["control"])) == 6


def settings(**github: str) -> Settings:
    return config.parse(GOOD | {"github": GITHUB | github})


def test_an_encrypted_value_is_refused_and_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {
        "gcp:project": "acme-ml-prod",
        "gcp:region": "us-central1",
        "vertex-training-bootstrap:projectNumber": "hunter2",  # would be shown: it has no number
        "vertex-training-bootstrap:labels": '{"Team": "hunter2"}',
        "vertex-training-bootstrap:rotationDays": "0",
    }
    encrypted = ["vertex-training-bootstrap:projectNumber", "vertex-training-bootstrap:labels"]
    monkeypatch.setattr(pulumi, "get_stack", lambda: "prod")
    pulumi.runtime.set_all_config(values, encrypted)
    try:
        with pytest.raises(ConfigError) as failed:
            config.read(tmp_path)
    finally:
        pulumi.runtime.set_all_config({}, [])
    report = failed.value.report()
    assert report.count("is encrypted") == 2
    assert "pulumi config rm vertex-training-bootstrap:projectNumber" in report
    assert "hunter2" not in report


def test_a_program_ends_with_every_mistake_in_words_and_declares_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    done: list[Any] = []

    def refuse(folder: Path) -> Settings:
        read.append(folder)
        raise ConfigError([Problem("missing", path=("a",)), Problem("missing", path=("b",))])

    monkeypatch.setattr(program, "deploy", done.append)
    monkeypatch.setattr(program.engine, "end_with_message", lambda text: done.append(text))
    monkeypatch.setattr(program.config, "read", refuse)
    program.run(tmp_path / "__main__.py")
    report = "2 mistakes; nothing was changed.\na: missing.\nb: missing."
    assert (read, done) == ([tmp_path], [report])
    right = config.parse(GOOD)
    monkeypatch.setattr(program.config, "read", lambda _: right)
    program.run(str(tmp_path / "__main__.py"))
    assert done[1:] == [right]
