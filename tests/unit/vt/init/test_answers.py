"""What a repository may be made from: each mistake with its option, value and hint."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.errors import ConfigError
from vertex_training_cli.init import answers
from vertex_training_cli.init.answers import EnvironmentAnswers

DEV = {
    "name": "dev",
    "project": "acme-ml-dev",
    "projectNumber": "210987654321",
    "region": "us-central1",
}
GIVEN: dict[str, Any] = {
    "name": "", "team": "", "submitters": (), "github": "", "project": "acme-ml-dev",
    "projectNumber": "210987654321", "region": "",
}  # fmt: skip


def problems(raw: dict[str, Any]) -> list[tuple[str, str, str]]:
    with pytest.raises(ConfigError) as refused:
        answers.parse(raw)
    return [(each.what, each.value, each.hint) for each in refused.value.problems]


def test_what_is_no_mapping_is_told_as_answers() -> None:
    [(what, value, hint)] = problems("x")  # type: ignore[arg-type]
    assert (what.partition(":")[0], value, hint) == ("answers", "x", "")


def environment(**more: Any) -> dict[str, Any]:
    return {"name": "acme", "environments": [{**DEV, **more}]}


def test_the_usual_answers_are_filled_in() -> None:
    made = answers.of_options(GIVEN, "My Training")
    assert made.model_dump(by_alias=True) == {
        "name": "my-training",
        "team": "ml-platform",
        "submitters": (),
        "github": "octo-org/octo-repo",
        "environments": [DEV],
    }
    given = {"name": "own", "team": "t", "submitters": ("user:a@x.org",), "github": "a/b"}
    own = answers.of_options({**GIVEN, **given, "region": "europe-west4"}, "x")
    assert own.model_dump(by_alias=True) == {
        **given, "environments": [{**DEV, "region": "europe-west4"}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ({"name": "acme", "environments": [{"name": "dev"}]},
         [(f"{option}: missing", "", f"give it: {option} VALUE")
          for option in ("--project", "--number", "--region")]),
        ({"environments": [DEV]}, [("--name: missing", "", "give it: --name VALUE")]),
        (environment(name="Dev"),
         [("--environment: must be 1 to 20 lowercase letters and digits, beginning with a letter",
           "Dev", "")]),
        (environment(name="local"),
         [("--environment: is the stack of the local cloud, which every repository has", "local",
           "")]),
        (environment(project="local-ml"),
         [("--project: is a project of the local cloud: an environment is one of Google Cloud",
           "local-ml", "")]),
        (environment(region="us-centrl1"),
         [("--region: runs no training jobs: did you mean us-central1?", "us-centrl1", "")]),
        (environment(region="mars"),
         [("--region: runs no training jobs: `vt catalogue` lists regions", "mars", "")]),
        ({**environment(), "submitters": ["x@y.org"]},
         [("--submitter: 'x@y.org' must look like group:ml-engineers@example.com", "", "")]),
        ({**environment(), "submitters": ["user:a b@y.org"]},
         [("--submitter: 'user:a b@y.org' must look like group:ml-engineers@example.com", "",
           "")]),
        ({"name": "acme", "environments": [DEV, DEV, {**DEV, "name": "qa"}]},
         [("--environment: dev is there already", "", "")]),
    ],
)  # fmt: skip
def test_every_mistake_is_told_with_the_option_that_gave_it(
    raw: dict[str, Any], found: list[tuple[str, str, str]]
) -> None:
    assert problems(raw) == found


@pytest.mark.parametrize(
    ("name", "right"),
    [("a", True), ("a1", True), ("a" * 20, True), ("a" * 21, False), ("1a", False), ("", False),
     ("a-b", False), ("staging\n", False)],
)  # fmt: skip
def test_names_of_environments(name: str, right: bool) -> None:
    if right:
        assert answers.parse(environment(name=name)).environments[0].name == name
    else:
        assert [what.partition(":")[0] for what, *_ in problems(environment(name=name))] == [
            "--environment"
        ]


@pytest.mark.parametrize(
    ("github", "right"),
    [("a/b", True), ("octo-org/octo.repo_1", True), ("a" * 39 + "/b", True), ("-a/b", False),
     ("a" * 40 + "/b", False), ("a/" + "b" * 100, True), ("a/" + "b" * 101, False), ("a", False)],
)  # fmt: skip
def test_names_of_repositories_at_github(github: str, right: bool) -> None:
    raw = {**environment(), "github": github}
    if right:
        assert answers.parse(raw).github == github
    else:
        assert [(what.partition(":")[0], value) for what, value, _ in problems(raw)] == [
            ("--github", github)
        ]


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("acme", "acme"), ("My Training!", "my-training"), ("2026-models-7", "models"),
        ("___", "training"), ("", "training"), ("a" * 41, "a" * 40), ("a" * 39 + "-b", "a" * 39),
        ("a--b", "a-b"),
    ],
)  # fmt: skip
def test_a_folder_gives_a_name(folder: str, name: str) -> None:
    assert answers.name_from(folder) == name


@pytest.mark.parametrize(
    ("first", "name", "project"),
    [
        ("acme-ml-dev", "staging", "acme-ml-staging"),
        ("acme", "qa", "acme-qa"),
        ("acme-ml-dev", "Q-A", "acme-ml-qa"),
        ("a" * 30, "qa", "a" * 27 + "-qa"),
        ("a" * 26 + "-bcd", "qa", "a" * 26 + "-qa"),
        ("acme", "e" * 21, "acme-" + "e" * 20),
    ],
)
def test_a_project_like_that_of_the_first_environment(first: str, name: str, project: str) -> None:
    assert answers.project_like(first, name) == project


def test_one_more_environment_is_like_the_first_where_nothing_is_given() -> None:
    first = EnvironmentAnswers.model_validate({**DEV, "region": "europe-west4"})
    nothing = {"project": "", "projectNumber": "", "region": ""}
    made = answers.environment_of_options("qa", nothing, first)
    assert made.model_dump(by_alias=True) == {
        "name": "qa", "project": "acme-ml-qa", "projectNumber": "123456789012",
        "region": "europe-west4",
    }  # fmt: skip
    own = {"project": "own-qa", "projectNumber": "345678901234", "region": "us-east1"}
    made = answers.environment_of_options("qa", own, first)
    assert made.model_dump(by_alias=True) == {"name": "qa", **own}
    with pytest.raises(ConfigError) as refused:
        answers.environment_of_options("Qa", {**nothing, "region": "mars"}, first)
    assert [str(each).partition(":")[0] for each in refused.value.problems] == [
        "--environment", "--region",
    ]  # fmt: skip


def test_what_a_repository_has_once_is_refused_for_one_environment() -> None:
    answers.ensure_only_of_environment(GIVEN)
    wrong = {**GIVEN, "name": "a", "team": "b", "submitters": ("c",), "github": "d"}
    with pytest.raises(ConfigError) as refused:
        answers.ensure_only_of_environment(wrong)
    assert [(each.what, each.hint) for each in refused.value.problems] == [
        (f"{option}: is of the whole repository, not of one environment",
         "edit the repository's files instead")
        for option in ("--name", "--team", "--submitter", "--github")
    ]  # fmt: skip


def test_examples_that_are_still_there_are_told() -> None:
    made = answers.parse(environment(projectNumber="123456789012"))
    assert answers.placeholders(made) == ["octo-org/octo-repo", "123456789012"]
    assert answers.placeholders(answers.parse({**environment(), "github": "a/b"})) == []


def added(*names: str, before: str = "") -> list[str]:
    made = answers.parse({"name": "a", "environments": [{**DEV, "name": n} for n in names]})
    more = EnvironmentAnswers.model_validate({**DEV, "name": "new"})
    return [each.name for each in made.with_environment(more, before).environments]


def test_an_environment_is_the_last_or_before_a_later_one() -> None:
    assert added("dev", "prod") == ["dev", "prod", "new"]
    assert added("dev", "qa", "prod", before="prod") == ["dev", "qa", "new", "prod"]
    assert added("dev", "qa", "prod", before="qa") == ["dev", "new", "qa", "prod"]


@pytest.mark.parametrize(
    ("names", "before", "hint"),
    [
        (("dev", "qa", "prod"), "dev", "one of qa, prod"),
        (("dev", "qa"), "gone", "one of qa"),
        (("dev",), "dev", "there is none yet: leave it out"),
    ],
)
def test_an_environment_is_deployed_after_the_first(
    names: tuple[str, ...], before: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        added(*names, before=before)
    [problem] = refused.value.problems
    assert (problem.what, problem.value, problem.hint) == (
        "--before: no environment that is deployed later", before, hint,
    )  # fmt: skip


def test_an_environment_that_is_there_is_not_added_twice() -> None:
    with pytest.raises(ConfigError, match="new is there already"):
        added("dev", "new")
