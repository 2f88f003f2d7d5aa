"""From the text of a file to the message, value by value: what is taken, and each whole mistake."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.customjob.request.message import MessageBuilder
from vertex_training.customjob.request.references import UnknownValue
from vertex_training.errors import Location, Mend, Problem
from vertex_training.located_yaml import document

TABLE = {
    "buckets.data": "gs://data",
    "reservations.h100": {"reservationAffinityType": "ANY_RESERVATION"},
    "images.later": UnknownValue("build it"),
}
#: Where a value of each type stands, as lines around the value.
PLACES = {
    "int32": "jobSpec: {workerPoolSpecs: [{diskSpec: {bootDiskSizeGb: VALUE}}]}",
    "int64": "jobSpec: {workerPoolSpecs: [{replicaCount: VALUE}]}",
    "bool": "jobSpec: {enableWebAccess: VALUE}",
    "duration": "jobSpec: {scheduling: {timeout: VALUE}}",
    "enum": "jobSpec: {scheduling: {strategy: VALUE}}",
    "text": "jobSpec: {serviceAccount: VALUE}",
    "double": "studySpec: {parameters: [{doubleValueSpec: {minValue: VALUE}}]}",
    "time": "studySpec: {studyStoppingConfig: {maximumRuntimeConstraint: {endTime: VALUE}}}",
}

PATHS = {
    "int32": ("jobSpec", "workerPoolSpecs", 0, "diskSpec", "bootDiskSizeGb"),
    "int64": ("jobSpec", "workerPoolSpecs", 0, "replicaCount"),
    "bool": ("jobSpec", "enableWebAccess"),
    "duration": ("jobSpec", "scheduling", "timeout"),
    "enum": ("jobSpec", "scheduling", "strategy"),
    "text": ("jobSpec", "serviceAccount"),
    "double": ("studySpec", "parameters", 0, "doubleValueSpec", "minValue"),
    "time": ("studySpec", "studyStoppingConfig", "maximumRuntimeConstraint", "endTime"),
}


def built(text: str, kind: Any = None) -> tuple[dict[str, Any] | None, MessageBuilder]:
    builder = MessageBuilder(document.read(text.encode(), "x.yaml"), TABLE, kind)
    return builder.build_message(), builder


def inside(value: Any) -> Any:
    """The one value that is deepest in a message, and its type."""
    while isinstance(value, dict | list) and value:
        value = next(iter(value.values())) if isinstance(value, dict) else value[0]
    return value


@pytest.mark.parametrize(
    ("place", "written", "value"),
    [
        ("int64", "1", 1),
        ("int64", '"12"', 12),
        ("int64", "-0", 0),
        ("int64", "+7", 7),
        ("int64", "9223372036854775807", 2**63 - 1),
        ("int64", "-9223372036854775808", -(2**63)),
        ("int32", "2147483647", 2**31 - 1),
        ("int32", "-2147483648", -(2**31)),
        ("bool", "true", True),
        ("bool", "false", False),
        ("duration", "3600s", "3600s"),
        ("duration", "-1.123456789s", "-1.123456789s"),
        ("enum", "SPOT", "SPOT"),
        ("text", "trainer", "trainer"),
        ("text", '"012"', "012"),
        ("text", '"${buckets.data}/x"', "gs://data/x"),
        ("text", "2026-01-31", "2026-01-31"),
        ("double", "0.5", 0.5),
        ("double", "1e-4", 0.0001),
        ("double", '"2.50"', 2.5),
        ("double", "3", 3),
        ("double", "9007199254740991.0", 2**53 - 1),
        ("time", "2027-01-31T12:00:00Z", "2027-01-31T12:00:00Z"),
        ("time", '"2027-01-31T12:00:00.5+01:00"', "2027-01-31T12:00:00.5+01:00"),
    ],
)
def test_a_value_of_its_type_is_taken(place: str, written: str, value: Any) -> None:
    message, builder = built(PLACES[place].replace("VALUE", written))
    assert (builder.problems, builder.remarks, builder.unreadable) == ([], [], [])
    found = inside(message)
    assert (found, type(found)) == (value, type(value))


WHOLE, PLAIN = "must be a whole number", "write it plainly"
TIME, RFC = "is not a point in time", 'RFC 3339, like "2027-01-31T12:00:00Z"'
SECONDS = 'seconds with an s, as text: "3600s"'
BOTH = "the API takes {} to {} here"
INT64 = BOTH.format("-9,223,372,036,854,775,808", "9,223,372,036,854,775,807")
INT32 = BOTH.format("-2,147,483,648", "2,147,483,647")
API = "is not one of the API's values"
NAMES = "known here: FLEX_START, LOW_COST, ON_DEMAND, SPOT, STANDARD"


@pytest.mark.parametrize(
    ("place", "written", "rule", "what", "shown", "hint", "mend"),
    [
        ("int64", "9223372036854775808", "number-range", "is out of range",
         "9223372036854775808", INT64, None),
        ("int64", "-9223372036854775809", "number-range", "is out of range",
         "-9223372036854775809", INT64, None),
        ("int32", "2147483648", "number-range", "is out of range", "2147483648", INT32, None),
        ("int32", "-2147483649", "number-range", "is out of range", "-2147483649", INT32, None),
        ("int64", "012", "yaml-number", "is read by YAML as 10", "012", PLAIN, None),
        ("int64", "1_000", "yaml-number", "is read by YAML as 1000", "1_000", PLAIN, None),
        ("int64", "true", "wrong-type", WHOLE, "true", "digits alone, like 4", None),
        ("int64", "1e3", "wrong-type", WHOLE, "1e3", "write 1000", Mend("value", 1000)),
        ("int64", "1.0", "wrong-type", WHOLE, "1.0", "write 1", Mend("value", 1)),
        ("int64", "0.0", "wrong-type", WHOLE, "0.0", "write 0", Mend("value", 0)),
        ("int64", "1.5", "wrong-type", WHOLE, "1.5", "digits alone, like 4", None),
        ("int64", "[1]", "wrong-type", WHOLE, "a list", "digits alone, like 4", None),
        ("int64", "{a: 1}", "wrong-type", WHOLE, "a mapping", "digits alone, like 4", None),
        ("bool", '"True"', "wrong-type", "must be true or false", "True", "without quotes",
         Mend("value", True)),
        ("bool", '"false"', "wrong-type", "must be true or false", "false", "without quotes",
         Mend("value", False)),
        ("bool", "maybe", "wrong-type", "must be true or false", "maybe", "without quotes", None),
        ("bool", "1", "wrong-type", "must be true or false", "1", "without quotes", None),
        ("duration", "24h", "duration-format", "is not a duration", "24h", 'write "86400s"',
         Mend("value", "86400s")),
        ("duration", "60", "duration-format", "is not a duration", "60", 'write "60s"',
         Mend("value", "60s")),
        ("duration", "1.1234567891s", "duration-format", "is not a duration", "1.1234567891s",
         SECONDS, None),
        ("duration", "[]", "duration-format", "is not a duration", "a mapping or list", SECONDS,
         None),
        ("enum", "spot", "enum-value", API, "spot", "did you mean 'SPOT'?", Mend("value", "SPOT")),
        ("enum", "CHEAP", "enum-value", API, "CHEAP", NAMES, None),
        ("enum", "5", "wrong-type", "must be one of the API's names", "5", "a name", None),
        ("text", "5", "not-text-value", "must be text", "5", 'YAML reads it as 5; quote it: "5"',
         Mend("value", "5")),
        ("text", "no", "not-text-value", "must be text", "no",
         'YAML reads it as false; quote it: "no"', Mend("value", "no")),
        ("text", "[a]", "wrong-type", "must be text", "a list", "write one value", None),
        ("text", '"${buckets.dta}"', "unknown-reference", "names what this stack does not have",
         "${buckets.dta}", "did you mean 'buckets.data'?", None),
        ("text", '"x/${images.later}"', "unknown-reference", "names what this stack does not have",
         "${images.later}", "build it", None),
        ("double", "true", "wrong-type", "must be a number", "true", "like 0.1 or 1.0e-4", None),
        ("double", "x", "wrong-type", "must be a number", "x", "like 0.1 or 1.0e-4", None),
        ("double", "012", "yaml-number", "is read by YAML as 10", "012", PLAIN, None),
        ("double", ".inf", "number-range", "is not finite", ".inf", "write a number", None),
        ("time", "2027-01-31", "timestamp-format", TIME, "2027-01-31", RFC, None),
        ("time", "2027-01-31T12:00:00", "timestamp-format", TIME, "2027-01-31T12:00:00", RFC,
         None),
        ("time", "[]", "timestamp-format", TIME, "a mapping or list", RFC, None),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_told_with_what_to_write(
    place: str, written: str, rule: str, what: str, shown: str, hint: str, mend: Mend | None
) -> None:
    text = PLACES[place].replace("VALUE", written)
    _, builder = built(text)
    [problem] = builder.problems
    path = PATHS[place]
    location = Location("x.yaml", 1, text.index(written) + 1)
    assert problem == Problem(what, shown, hint, path, location, rule)
    assert problem.mend == mend
    assert builder.unreadable == [path]


def test_one_value_is_taken_for_a_list_and_its_mistakes_are_told_as_in_one() -> None:
    text = "workerPoolSpecs: {replicaCount: x, containerSpec: {args: a, env: {name: A, value: 5}}}"
    message, builder = built(text)
    assert message == {
        "jobSpec": {"workerPoolSpecs": [{"containerSpec": {"args": ["a"], "env": [{"name": "A"}]}}]}
    }
    pools = ("workerPoolSpecs",)
    container = (*pools, "containerSpec")
    assert [(p.path, p.rule, p.level, p.what, p.hint) for p in builder.remarks] == [
        (pools, "pool-list", "note", "one worker pool without a list",
         "REST takes a list: start it with '- '"),
        ((*container, "args"), "lone-value", "warning", "one value where a list is wanted",
         "start it with '- '"),
        ((*container, "env"), "lone-value", "warning", "one value where a list is wanted",
         "start it with '- '"),
    ]  # fmt: skip
    assert builder.unreadable == [
        ("jobSpec", "workerPoolSpecs", 0, "replicaCount"),
        ("jobSpec", "workerPoolSpecs", 0, "containerSpec", "env", 0, "value"),
    ]
    assert built("workerPoolSpecs: [{containerSpec: {args: [a, 5]}}]")[0] == {
        "jobSpec": {"workerPoolSpecs": [{"containerSpec": {}}]}
    }
    for wrong in ("{args: {}}", "{env: {}}", "{env: {name: A, valu: b}}", "{env: A=b}"):
        [problem] = built(f"workerPoolSpecs: [{{containerSpec: {wrong}}}]")[1].problems
        assert (problem.rule, problem.what, problem.hint) == (
            *("wrong-type", "must be a list", "start each item with '- '"),
        )


def test_a_file_with_mistakes_without_end_is_told_a_hundred_of_them() -> None:
    text = "".join(f"field{number}: 1\n" for number in range(150))
    assert len(built(text)[1].problems) == 100
    pools = "".join("- x\n" for _ in range(150))
    assert len(built(f"workerPoolSpecs:\n{pools}")[1].problems) == 100
    labels = "".join(f"  l{number}: 1\n" for number in range(150))
    assert len(built(f"labels:\n{labels}jobSpec: {{}}\n")[1].problems) == 100
