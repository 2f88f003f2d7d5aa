"""Arguments of a component while they are read: plain values, names, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest

from vertex_training.components import arguments as module
from vertex_training.components import provider
from vertex_training.components.arguments import KEYWORDS, Arguments, ArgumentsError
from vertex_training.customjob.request.job_file import Submission
from vertex_training.engine import HOSTED
from vertex_training.errors import Problem
from vertex_training.pulumi_internals import UNKNOWN, Unknown
from vertex_training.settings.model import Settings


@pytest.fixture
def hosted() -> Iterator[None]:
    """As in the plugin: arguments come from another language."""
    token = HOSTED.set(True)
    yield
    HOSTED.reset(token)


@pytest.fixture
def given() -> Arguments:
    return Arguments("TrainingBuckets 'store'")


@pytest.fixture(autouse=True)
def of_provider(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Settings of the provider of the component."""
    values: dict[str, str] = {}
    monkeypatch.setattr(provider, "value", lambda _, key: values.get(key))
    return values


def said(given: Arguments) -> list[str]:
    return [str(problem) for problem in given.problems]


NOT_KNOWN = (
    "is not known before another resource was made. Hint: give what is known in a preview, like a "
    "name that the program chooses"
)


class Thing:
    """What is no value of a file."""


@pytest.mark.parametrize(
    ("value", "path", "plain", "problems"),
    [
        (None, ("a",), None, []),
        ("x", ("a",), "x", []),
        (5, ("a",), 5, []),
        (False, ("a",), False, []),
        (2.0, ("a",), 2.0, []),
        (
            {"a": 1, "b": None, 5: (1, {"c": [None]})},
            ("a",),
            {"a": 1, "5": [1, {"c": [None]}]},
            [],
        ),
        (Thing(), ("a",), None, ["a: cannot be a Thing. Hint: give its name, as text"]),
        (UNKNOWN, ("a",), None, [f"a: {NOT_KNOWN}"]),
        (
            {"ok": 1, "no": [1, UNKNOWN]},
            ("soft_delete",),
            {"ok": 1, "no": [1, None]},
            [f"soft_delete.no[1]: {NOT_KNOWN}"],
        ),
    ],
)
def test_a_value_is_plain_or_told_at_its_path(
    given: Arguments, value: Any, path: tuple[str, ...], plain: Any, problems: list[str]
) -> None:
    assert given.plain(value, path) == plain
    assert said(given) == problems
    assert [str(each) for each in given.unknown] == [p for p in problems if NOT_KNOWN in p]


def test_an_image_may_be_unknown_and_something_stands_for_it(given: Arguments) -> None:
    path = ("spec", "containerSpec")
    image = f"image.invalid/not-known-yet@sha256:{'0' * 64}"
    assert given.plain({"imageUri": UNKNOWN}, path) == {"imageUri": image}
    assert (given.stood_in, given.problems) == ([(*path, "imageUri")], [])


@pytest.mark.parametrize(("value", "plain"), [(2.0, 2), (2.5, 2.5), (True, True)])
@pytest.mark.usefixtures("hosted")
def test_whole_numbers_of_other_languages_are_integers(
    given: Arguments, value: Any, plain: Any
) -> None:
    found = given.plain(value, ("a",))
    assert (found, type(found)) == (plain, type(plain))


@pytest.mark.usefixtures("hosted")
def test_other_languages_spell_the_first_part_of_a_path_as_they_do(given: Arguments) -> None:
    given.plain(Thing(), ("soft_delete_days", "a_b"))
    given.mapping({"own_buckets": 5}, "own_buckets")
    assert said(given) == [
        "softDeleteDays.a_b: cannot be a Thing. Hint: give its name, as text",
        "ownBuckets: is a int and no map of names. Hint: name each entry, like {data: …}",
    ]


KNOWN = ("project", "region", "own_buckets")


@pytest.mark.parametrize(
    ("args", "keywords", "found", "problems"),
    [
        ({"own_buckets": False, "project": None}, {}, {"own_buckets": False}, []),
        (KEYWORDS, {"project": "p"}, {"project": "p"}, []),
        (
            {"project": "p"},
            {"region": "r", "x": 1},
            {"project": "p"},
            ["region: are keywords, too. Hint: give all arguments in one way"],
        ),
        (
            ["project"],
            {},
            {},
            ["the arguments are a list. Hint: give a dict by names of arguments"],
        ),
        (
            {"own_bucket": 1, "xyz": 2, 5: 3},
            {},
            {},
            [
                "own_bucket: unknown argument. Hint: did you mean 'own_buckets'?",
                "xyz: unknown argument",
                "5: unknown argument",
            ],
        ),
        (
            {"ownBuckets": 1},
            {},
            {},
            ["ownBuckets: unknown argument. Hint: did you mean 'own_buckets'?"],
        ),
    ],
)
def test_arguments_are_found_by_their_names(
    given: Arguments, args: Any, keywords: dict[str, Any], found: Any, problems: list[str]
) -> None:
    assert given.named(args, keywords, KNOWN) == found
    assert [line.partition(". Hint: known")[0] for line in said(given)] == problems


@pytest.mark.usefixtures("hosted")
def test_other_languages_give_arguments_by_their_own_names(given: Arguments) -> None:
    for name in ("ownBuckets", "own_buckets"):
        found = given.named({name: False, "region": "r"}, {}, KNOWN)
        assert (found, said(given)) == ({"own_buckets": False, "region": "r"}, [])


def test_project_and_region_are_the_providers_where_the_component_has_them(
    given: Arguments, of_provider: dict[str, str]
) -> None:
    of_provider |= {"project": "theirs", "region": "europe-west4", "own_buckets": "x"}
    assert given.named({"project": "mine"}, {}, KNOWN) == {
        "project": "mine",
        "region": "europe-west4",
    }
    assert given.named({}, {}, ("project",)) == {"project": "theirs"}


@pytest.mark.parametrize(
    ("args", "name", "inputs"),
    [
        ({}, "store", {}),
        ({"base_name": "data"}, "data", {"baseName": "data"}),
        ({"base_name": 5}, "5", {"baseName": 5}),
    ],
)
def test_a_component_is_called_as_its_argument_says(
    given: Arguments, args: dict[str, Any], name: str, inputs: dict[str, Any]
) -> None:
    assert given.base_name(args, "store") == name
    assert given.inputs == inputs


def test_a_wrong_key_is_told_at_the_argument_that_gave_it(given: Arguments) -> None:
    given.add([Problem("is no name", "X_", path=("jobs", "X_"))])
    given.base_name({"base_name": "Y_"}, "store")
    given._given["jobs", "Y_"] = ()
    given.add([Problem("is no name", "Y_", path=("jobs", "Y_"))])
    assert said(given) == ["jobs.X_: is no name (got X_).", "base_name: is no name (got Y_)."]


@pytest.mark.parametrize(
    ("args", "flag", "inputs", "problems"),
    [
        ({}, True, {}, []),
        ({"own_buckets": True}, True, {"ownBuckets": True}, []),
        ({"own_buckets": False}, False, {"ownBuckets": False}, []),
        ({"own_buckets": "no"}, True, {"ownBuckets": "no"},
         ["own_buckets: must be true or false."]),
        ({"own_buckets": UNKNOWN}, True, {"ownBuckets": None}, [f"own_buckets: {NOT_KNOWN}"]),
    ],
)  # fmt: skip
def test_a_flag_is_true_without_a_word(
    given: Arguments, args: dict[str, Any], flag: bool, inputs: dict[str, Any], problems: list[str]
) -> None:
    assert given.flag(args, "own_buckets") is flag
    assert (given.inputs, said(given)) == (inputs, problems)


def test_a_map_of_names_keeps_entries_that_are_outputs(given: Arguments) -> None:
    entries = {"data": "x", "none": None, 5: UNKNOWN}
    assert given.mapping({"reads": entries}, "reads") == {"data": "x", "5": UNKNOWN}
    assert given.mapping({}, "reads") == given.mapping({"reads": None}, "reads") == {}
    assert given.problems == []


def test_what_may_be_unknown_is_an_input_all_the_same(given: Arguments) -> None:
    assert given.known("k", ("encryption_key",)) == "k"
    assert given.known(UNKNOWN, ("control_bucket",)) is None
    assert given.known("b", ("reads", "my_data")) == "b"
    assert given.known(UNKNOWN, ("reads", "new")) is None
    assert given.problems == []
    assert given.known(Thing(), ("reads", "odd")) is None
    assert given.known({"a": Thing()}, ("reads", "map")) is None
    assert said(given) == [
        "reads.odd: cannot be a Thing. Hint: give its name, as text",
        "reads.map.a: cannot be a Thing. Hint: give its name, as text",
    ]
    unknown = given.inputs["controlBucket"]
    assert isinstance(unknown, Unknown)
    assert given.inputs == {
        "encryptionKey": "k",
        "controlBucket": unknown,
        "reads": {"my_data": "b", "new": unknown, "odd": None, "map": {"a": None}},
    }


RULE = "Hint: 1 to 40 lowercase letters, digits and hyphens, the first a letter"


@pytest.mark.parametrize(
    ("asked", "name", "problems"),
    [
        ("a", "a", []),
        ("a-1", "a-1", []),
        ("a" * 40, "a" * 40, []),
        ("a" * 41, None, [f"environment: must be a name like staging (got {'a' * 41}). {RULE}"]),
        ("1a", None, [f"environment: must be a name like staging (got 1a). {RULE}"]),
        ("a-", None, [f"environment: must be a name like staging (got a-). {RULE}"]),
        ("A", None, [f"environment: must be a name like staging (got A). {RULE}"]),
    ],
)
def test_an_environment_is_a_name(
    given: Arguments, asked: str, name: str | None, problems: list[str]
) -> None:
    found = given.environment({"environment": asked})
    assert said(given) == problems
    assert given.inputs == {"environment": asked}
    if name:
        assert found == name
    else:  # what follows is judged by another one
        assert module._ENVIRONMENT.fullmatch(found)


def test_the_stack_is_the_environment_where_none_is_given(
    given: Arguments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulumi, "get_stack", lambda: "prod")
    assert (given.environment({}), given.inputs, given.problems) == ("prod", {}, [])


SECTION = {"labels": {"a_b": "c"}, "buckets": {"my_data": {"soft_delete_days": 30}}, "x": 1}


def test_a_section_is_the_config_of_a_stack_file_and_paths_lead_back(given: Arguments) -> None:
    config = given.section(Settings, SECTION, ("labels", "buckets"))
    assert config == {"labels": {"a_b": "c"}, "buckets": {"my_data": {"softDeleteDays": 30}}}
    assert given.inputs == config
    assert given.given_path(("buckets", "my_data", "softDeleteDays")) == (
        *("buckets", "my_data", "soft_delete_days"),
    )
    assert given.given_path(("buckets", "other", "keepNoncurrentDays", 2)) == (
        *("buckets", "other", "keep_noncurrent_days", 2),
    )
    given.alias(("encryption_key",), ("encryption", "key"))
    assert given.given_path(("encryption", "key")) == ("encryption_key",)


@pytest.mark.parametrize(
    ("value", "config"),
    [
        ("x", "x"),
        ([{"soft_delete_days": 7}, "x"], [{"softDeleteDays": 7}, "x"]),
        ({"data": "x"}, {"data": "x"}),
    ],
)
def test_what_is_no_section_is_left_to_the_rules(given: Arguments, value: Any, config: Any) -> None:
    assert given.section(Settings, {"buckets": value}, ("buckets",)) == {"buckets": config}
    assert given.problems == []


def test_what_could_not_be_had_is_not_also_missing(given: Arguments) -> None:
    given.plain(UNKNOWN, ("region",))
    given.add([Problem("missing", path=("region",)), Problem("missing", path=("project",))])
    assert said(given) == [f"region: {NOT_KNOWN}", "project: missing."]


def test_a_key_in_two_spellings_is_told_at_the_second(given: Arguments) -> None:
    twice = {"buckets": {"data": {"softDeleteDays": 30, "soft_delete_days": 7}}}
    given.section(Settings, twice, ("buckets",))
    assert said(given) == ["buckets.data.soft_delete_days: is given twice. Hint: softDeleteDays"]


def test_all_mistakes_are_one_text(given: Arguments) -> None:
    given.check()
    given.add([Problem("missing", path=("region",))])
    with pytest.raises(ArgumentsError) as one:
        given.check()
    assert str(one.value) == (
        "TrainingBuckets 'store': 1 mistake; nothing of it was declared.\nregion: missing."
    )
    given.add([Problem("missing", path=("project",), hint="give project")])
    with pytest.raises(ArgumentsError) as two:
        given.check()
    assert str(two.value) == (
        "TrainingBuckets 'store': 2 mistakes; nothing of it was declared.\nregion: missing.\n"
        "project: missing. Hint: give project"
    )
    assert two.value.component == "TrainingBuckets 'store'"
    assert two.value.problems == tuple(given.problems)


def test_what_is_in_a_component_waits_for_what_the_component_waits_for() -> None:
    first, second, third = (object.__new__(pulumi.CustomResource) for _ in range(3))
    for depends_on, expected in (
        (None, []),
        (first, [first]),
        ([first, second], [first, second]),
    ):
        options = pulumi.ResourceOptions(depends_on=depends_on)
        assert Arguments("x", options, dependencies={third: None}).prerequisites() == [
            *expected,
            third,
        ]
    assert Arguments("x").prerequisites() == []


JOB = Submission("acme", "us-central1", "dev", "train", 1)
JOB_NAME = "job train of dev in acme, us-central1"


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        ({"jobs": [JOB]}, f"TrainingJob 'x' declares {JOB_NAME}. Hint: name it otherwise"),
        (
            {"buckets": ["data", "mine"]},
            "TrainingJob 'x' declares bucket data. Hint: give another environment or name",
        ),
    ],
)
def test_names_are_taken_by_one_component_of_a_program(
    monkeypatch: pytest.MonkeyPatch, claim: Any, problem: str
) -> None:
    taken = {JOB_NAME: "TrainingJob 'x'", "bucket data": "TrainingJob 'x'"}
    before = dict(taken)
    monkeypatch.setattr(module, "names_of_run", lambda: taken)
    monkeypatch.setattr(module, "is_mocked", lambda: False)
    with pytest.raises(ArgumentsError) as refused:
        Arguments("TrainingJob 'y'").claim(**claim)
    assert [str(each) for each in refused.value.problems] == [problem]
    assert taken == before  # nothing is taken by what is refused
    Arguments("TrainingJob 'z'").claim(buckets=["b"])
    assert taken == before | {"bucket b": "TrainingJob 'z'"}
    monkeypatch.setattr(module, "is_mocked", lambda: True)
    Arguments("TrainingJob 'y'").claim(**claim)


@pytest.mark.parametrize(
    ("name", "here", "there"),
    [
        ("soft_delete_days", "soft_delete_days", "softDeleteDays"),
        ("softDeleteDays", "soft_delete_days", "softDeleteDays"),
        ("project", "project", "project"),
        ("a1B", "a1_b", "a1B"),
    ],
)
def test_names_are_spelled_as_in_the_language_of_the_program(
    request: pytest.FixtureRequest, name: str, here: str, there: str
) -> None:
    assert module._spelled(name) == here
    request.getfixturevalue("hosted")
    assert module._spelled(name) == there


@pytest.mark.parametrize(
    ("project", "number"),
    [
        ("acme-ml", "100000000000"),
        (None, "100000000000"),
        ("local-training", "971240389164"),
    ],
)
def test_a_number_that_nobody_gave_is_the_local_clouds_or_no_projects(
    project: str | None, number: str
) -> None:
    raw = {} if project is None else {"project": project}
    assert module._stand_in_number(raw) == number


def test_outputs_are_attributes_and_registered_as_the_schema_spells_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_output_of", lambda component, value: (component, value))
    registered: list[Any] = []
    component: Any = SimpleNamespace(register_outputs=registered.append)
    module.set_outputs(component, {"cost_usd_at_most": 1, "path": "p"})
    assert (component.cost_usd_at_most, component.path) == ((component, 1), (component, "p"))
    assert registered == [{"costUsdAtMost": (component, 1), "path": (component, "p")}]
