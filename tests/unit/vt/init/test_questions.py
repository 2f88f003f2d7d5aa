"""What `vt init` asks on a terminal, what it takes without one, and what it refuses or advises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from vertex_training.errors import CommandError, ConfigError
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


def test_without_a_terminal_nothing_is_asked(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_is_terminal", lambda: False)
    assert made(project="acme-ml-dev", projectNumber="123456789012") == answers()
    first = Answers(name="x", environments=[DEV])
    assert command._environment("prod", NOTHING, first) == EnvironmentAnswers(
        name="prod", project="acme-ml-prod", projectNumber="123456789012", region="us-east1"
    )
    assert asked[0] == {}


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


def test_nothing_is_asked_where_an_answer_is_of_the_whole_repository(asked: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        command._environment("prod", NOTHING | {"team": "t"}, Answers(name="x", environments=[DEV]))
    assert [each.what for each in refused.value.problems] == [
        "--team: is of the whole repository, not of one environment"
    ]
    assert asked[0] == {}


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"before": "prod", "write": False}, "--before"),
        ({"before": "", "write": True}, "--write"),
        ({"before": "prod", "write": True}, "--before"),
    ],
)
def test_options_of_an_environment_are_refused_without_one(
    options: dict[str, Any], option: str
) -> None:
    with pytest.raises(CommandError) as refused:
        command._ensure_no_options(**options)
    assert (refused.value.message, refused.value.hint) == (
        f"{option} goes with --environment.", "leave it out",
    )  # fmt: skip
    command._ensure_no_options(before="", write=False)


def test_a_folder_is_new_or_without_a_manifest(tmp_path: Path) -> None:
    command._ensure_new(tmp_path)
    command._ensure_new(tmp_path / "absent")
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError) as refused:
        command._ensure_new(tmp_path / "file")
    assert (refused.value.message, refused.value.hint) == (
        f"{tmp_path / 'file'} is a file.", "name a folder",
    )  # fmt: skip
    (tmp_path / command.manifest.NAME).write_text("")
    with pytest.raises(CommandError) as refused:
        command._ensure_new(tmp_path)
    assert (refused.value.message, refused.value.hint) == (
        f"{tmp_path} was made by `vt init` already.",
        "`vt init --environment NAME` adds to it, `vt upgrade` renews it",
    )


def test_a_folder_is_made_once_and_removed_only_while_it_is_empty(tmp_path: Path) -> None:
    root = tmp_path / "a" / "b"
    assert [command._make(root), command._make(root)] == [True, False]
    (root / "kept").write_text("")
    command._remove_if_empty(root)
    assert (root / "kept").exists()
    (root / "kept").unlink()
    command._remove_if_empty(root)
    assert not root.exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError) as refused:
        command._make(tmp_path / "file" / "x")
    assert refused.value.message == f"{tmp_path}/file/x cannot be made: Not a directory."


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
