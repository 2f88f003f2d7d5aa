"""What `vt init` asks on a terminal, what it takes without one, and what it refuses or advises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from vertex_training_cli.init import command
from vertex_training_cli.init.answers import Answers, EnvironmentAnswers

NOTHING: dict[str, Any] = {
    "name": "", "project": "", "projectNumber": "", "region": "", "team": "", "submitters": [],
    "github": "",
}  # fmt: skip
DEV = EnvironmentAnswers(
    name="dev", project="acme-ml-dev", projectNumber="210987654321", region="us-east1"
)
#: Each question of a new repository, with the answer that Enter gives.
QUESTIONS = {
    "Name of the project": "my-training",
    "Google Cloud project for dev": None,
    "Its number": "123456789012",
    "Region": "us-central1",
    "Team": "ml-platform",
    "Repository on GitHub": "octo-org/octo-repo",
    "Who may run jobs (group:…, user:…)": "",
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], dict[str, str]]:
    """What was asked, with what is usual; and what the person says, who takes that otherwise."""
    questions, said = dict[str, Any](), dict[str, str]()

    def prompt(question: str, *, default: Any = None, err: bool = False) -> str:
        assert err, "standard output is for what is made"
        questions[question] = default
        return said.get(question, default)

    monkeypatch.setattr(typer, "prompt", prompt)
    monkeypatch.setattr(command, "_is_terminal", lambda: True)
    return questions, said


def made(**given: Any) -> Answers:
    return command._answers(Path("/x/My Training"), NOTHING | given)


def answers(**more: Any) -> Answers:
    environment = EnvironmentAnswers(
        name="dev", project="acme-ml-dev", projectNumber="123456789012", region="us-central1"
    )
    return Answers(**{"name": "my-training", "environments": [environment]} | more)


def test_every_answer_is_asked_for_with_what_is_usual(asked: Any) -> None:
    questions, said = asked
    said |= {
        "Google Cloud project for dev": " acme-ml-dev ",
        "Who may run jobs (group:…, user:…)": "group:a@x.org,user:b@x.org  user:c@x.org",
    }
    members = ("group:a@x.org", "user:b@x.org", "user:c@x.org")
    assert made() == answers(submitters=members)
    assert questions == QUESTIONS


def test_what_was_given_is_not_asked_for(asked: Any) -> None:
    questions, _ = asked
    given = {
        "name": "own", "project": "acme-ml-dev", "projectNumber": "210987654321",
        "region": "us-east1", "team": "t", "submitters": ["user:a@x.org"], "github": "a/b",
    }  # fmt: skip
    found = made(**given)
    assert questions == {}
    assert found == Answers(
        name="own", team="t", submitters=("user:a@x.org",), github="a/b", environments=[DEV]
    )


def test_of_one_more_environment_three_answers_are_asked_for(asked: Any) -> None:
    questions, said = asked
    said["Its number"] = "345678901234"
    found = command._environment("prod", NOTHING, Answers(name="x", environments=[DEV]))
    assert questions == {
        "Google Cloud project for prod": "acme-ml-prod", "Its number": "123456789012",
        "Region": "us-east1",
    }  # fmt: skip
    assert found == EnvironmentAnswers(
        name="prod", project="acme-ml-prod", projectNumber="345678901234", region="us-east1"
    )


def test_what_will_not_do_what_one_may_expect_is_advised(tmp_path: Path) -> None:
    root = tmp_path / "outer" / "inner"
    root.mkdir(parents=True)
    own = {"environments": [DEV], "github": "a/b"}
    assert list(command._advice(root, answers(**own))) == []
    assert list(command._advice(root, answers())) == [
        "replace octo-org/octo-repo and 123456789012 in the files before a deployment; README.md "
        "says how"
    ]
    (tmp_path / "outer" / ".git").mkdir()
    inside = (
        f"{root} is inside of the repository {tmp_path}/outer: GitHub runs workflows of its top "
        "only"
    )
    assert list(command._advice(root, answers(**own))) == [inside]
    (root / ".git").mkdir()
    assert list(command._advice(root, answers(**own))) == []
