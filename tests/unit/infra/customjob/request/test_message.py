"""From the text of a file to the message, value by value: what is taken, and each whole mistake."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.customjob.kinds import CUSTOM_JOB, TUNING_JOB
from vertex_training.customjob.request.message import MessageBuilder, to_camel_case
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


@pytest.mark.parametrize(
    ("written", "value", "type_"),
    [
        ("1.0", 1, int),  # 1 and 1.0 are one request
        ("-3.0", -3, int),
        ("9007199254740992.0", 2.0**53, float),
        ("-9007199254740992.0", -(2.0**53), float),
        ("1.5", 1.5, float),
    ],
)
def test_whole_numbers_are_the_same_with_and_without_a_point(
    written: str, value: float, type_: type
) -> None:
    found = inside(built(PLACES["double"].replace("VALUE", written))[0])
    assert (found, type(found)) == (value, type_)


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


ENV = "workerPoolSpecs: [{containerSpec: {env: [{name: TOKEN, value: VALUE}]}}]"


@pytest.mark.parametrize(
    ("written", "rule", "hint"),
    [
        ("12345678", "not-text-value", "put it in quotes"),
        ("yes", "not-text-value", 'YAML reads it as true; quote it: "yes"'),
        ("[secret]", "wrong-type", "write one value"),
        ('"${secrets.x}"', "unknown-reference",
         "this stack declares no secrets; name 'x' under vertex-training:secrets"),
    ],
)  # fmt: skip
def test_no_value_of_a_variable_is_shown(written: str, rule: str, hint: str) -> None:
    [problem] = built(ENV.replace("VALUE", written))[1].problems
    assert (problem.rule, problem.value, problem.hint) == (rule, "", hint)


def test_gclouds_form_is_put_below_the_spec_and_names_are_written_as_rest_does() -> None:
    text = "worker_pool_specs: [{replica_count: 2}]\nscheduling: {timeout: x}\nserviceAccont: a\n"
    message, builder = built(text)
    assert message == {"jobSpec": {"workerPoolSpecs": [{"replicaCount": 2}], "scheduling": {}}}
    assert builder.unreadable == [
        ("jobSpec", "scheduling", "timeout"),
        ("jobSpec", "serviceAccont"),
    ]
    assert [(p.path, p.rule, p.mend) for p in builder.problems] == [
        (("scheduling", "timeout"), "duration-format", None),
        (("serviceAccont",), "unknown-field", Mend("rename", "serviceAccount")),
    ]
    rest, _ = built("labels: {a: b}\njobSpec:\n  worker_pool_specs: [{replica_count: 2}]\n")
    assert rest == {"labels": {"a": "b"}, "jobSpec": {"workerPoolSpecs": [{"replicaCount": 2}]}}


@pytest.mark.parametrize(
    ("key", "camel"),
    [
        ("boot_disk_size_gb", "bootDiskSizeGb"),
        ("bootDiskSizeGb", "bootDiskSizeGb"),
        ("bootDiskSize_gb", "bootDiskSize_gb"),
        ("args", "args"),
        ("a__b", "aB"),
        ("Args", "Args"),
    ],
)
def test_a_mix_of_both_spellings_is_none(key: str, camel: str) -> None:
    assert to_camel_case(key) == camel


def test_labels_are_text_and_those_that_are_not_are_told() -> None:
    message, builder = built("labels: {a: b, c: 1, d: no}\njobSpec: {}\n")
    assert message == {"labels": {"a": "b"}, "jobSpec": {}}
    assert [(p.path, p.rule, p.value) for p in builder.problems] == [
        (("labels", "c"), "not-text-value", "1"),
        (("labels", "d"), "not-text-value", "no"),
    ]
    [problem] = built("labels: [a]\njobSpec: {}\n")[1].problems
    assert (problem.rule, problem.what, problem.value, problem.hint) == (
        *("wrong-type", "must be a mapping of text to text", "a list", "name: value"),
    )


def test_references_are_recorded_and_one_may_stand_for_a_section() -> None:
    machine = "workerPoolSpecs: [{machineSpec: {reservationAffinity: VALUE}}]\nnetwork: VALUE2\n"
    text = machine.replace("VALUE2", '"${buckets.data}"')
    message, builder = built(text.replace("VALUE", '" ${reservations.h100} "'))
    assert message is not None
    [pool] = message["jobSpec"]["workerPoolSpecs"]
    assert pool["machineSpec"]["reservationAffinity"] == TABLE["reservations.h100"]
    assert pool["machineSpec"]["reservationAffinity"] is not TABLE["reservations.h100"]
    assert builder.used == {"reservations.h100", "buckets.data"}
    assert builder.problems == []
    for written, rule in (
        ('"${reservations.h10}"', "unknown-reference"),
        ('"${buckets.data}"', "wrong-type"),
        ("h100", "wrong-type"),
        ('"x ${reservations.h100}"', "wrong-type"),
    ):
        found, wrong = built(text.replace("VALUE", written))
        assert [p.rule for p in wrong.problems] == [rule]
        pools = [{"machineSpec": {}}]
        assert found == {"jobSpec": {"workerPoolSpecs": pools, "network": "gs://data"}}


def test_fields_that_exclude_one_another_are_told_at_the_last_one() -> None:
    text = "workerPoolSpecs:\n- containerSpec: {}\n  python_package_spec: {}\n  replicaCount: 1\n"
    _, builder = built(text)
    assert builder.problems == [
        Problem(
            "has containerSpec and pythonPackageSpec",
            "",
            "give only one of them",
            ("workerPoolSpecs", 0),
            Location("x.yaml", 3, 3),
            "one-of",
        )
    ]
    assert builder.unreadable == [("jobSpec", "workerPoolSpecs", 0)]
    assert built(text.replace("containerSpec", "diskSpec"))[1].problems == []


def test_a_field_in_both_spellings_is_told_at_the_second() -> None:
    message, builder = built("serviceAccount: a\nservice_account: b\n")
    assert message == {"jobSpec": {"serviceAccount": "a"}}
    assert builder.problems == [
        Problem(
            "the same field twice",
            "service_account",
            "it is there in camelCase and in snake_case",
            ("service_account",),
            Location("x.yaml", 2, 18),
            "duplicate-field",
        )
    ]


def test_a_field_of_another_place_moves_where_that_is_certain() -> None:
    text = "workerPoolSpecs: [{containerSpec: {}, machineSpec: {machineType: a}, imageUri: b}]\n"
    [problem] = built(text)[1].problems
    assert (problem.rule, problem.what) == ("misplaced-field", "is no field of WorkerPoolSpec")
    assert problem.mend == Mend("move", target=("workerPoolSpecs", 0, "containerSpec"))
    outer = "workerPoolSpecs: [{containerSpec: {}, machineSpec: {replicaCount: 1}}]\n"
    assert built(outer)[1].problems[0].mend == Mend("move", target=("workerPoolSpecs", 0))
    both = "workerPoolSpecs: [{containerSpec: {}, pythonPackageSpec: {}, args: [b]}]\n"
    assert [p.mend for p in built(both)[1].problems if p.rule == "misplaced-field"] == [None]
    far = "timeout: 3600s\n"
    assert [(p.rule, p.mend) for p in built(far)[1].problems] == [("misplaced-field", None)]


def test_no_field_is_renamed_to_one_that_is_there() -> None:
    [problem] = built("serviceAccount: a\nserviceAccont: b\n")[1].problems
    assert (problem.rule, problem.mend) == ("unknown-field", None)
    assert problem.hint == "did you mean 'serviceAccount'?"


def test_what_has_no_value_is_left_out_and_told() -> None:
    text = (
        "serviceAccount:\nnetwork: ''\nreservedIpRanges: [a]\n"
        "workerPoolSpecs: [{containerSpec: {imageUri: '', args: ['']}}]\n"
        "baseOutputDirectory: {outputUriPrefix: ''}\n"
    )
    message, builder = built(text)
    assert message == {
        "jobSpec": {
            "reservedIpRanges": ["a"],
            "workerPoolSpecs": [{"containerSpec": {"imageUri": "", "args": [""]}}],
        }
    }
    assert builder.left_out == {
        ("serviceAccount",), ("network",), ("baseOutputDirectory", "outputUriPrefix")
    }  # fmt: skip
    what, hint = "has no value, so it is left out", "write one, or remove the key"
    assert builder.remarks == [
        Problem(what, "", hint, path, Location("x.yaml", *place), "no-value", "warning")
        for path, place in (
            (("serviceAccount",), (1, 1)),
            (("network",), (2, 1)),
            (("baseOutputDirectory", "outputUriPrefix"), (5, 23)),
        )
    ]
    assert {remark.mend for remark in builder.remarks} == {Mend("remove")}
    assert built("baseOutputDirectory: {}\n")[0] == {"jobSpec": {"baseOutputDirectory": {}}}


@pytest.mark.parametrize(
    ("place", "fields"),
    [
        ("diskSpec", ["bootDiskType"]),
        ("machineSpec", ["gpuPartitionSize", "tpuTopology"]),
        (
            "",
            [
                *("experiment", "experimentRun", "network", "persistentResourceId"),
                *("protectedArtifactLocationId", "serviceAccount", "tensorboard"),
            ],
        ),
    ],
)
def test_empty_text_of_what_may_be_absent_is_no_value(place: str, fields: list[str]) -> None:
    for field in fields:
        given = f"{field}: ''"
        text = f"workerPoolSpecs: [{{{place}: {{{given}}}}}]\n" if place else f"{given}\n"
        message, builder = built(text)
        pools = {"workerPoolSpecs": [{place: {}}]} if place else {}
        assert message == {"jobSpec": pools}
        assert [each[-1] for each in builder.left_out] == [field]
    key = built("encryptionSpec: {kmsKeyName: ''}\njobSpec: {}\n")
    assert (key[0], key[1].left_out) == ({"jobSpec": {}}, {("encryptionSpec", "kmsKeyName")})
    required = built("displayName: ''\njobSpec: {}\n")[0]
    assert required == {"displayName": "", "jobSpec": {}}


def test_what_is_empty_cannot_be_quoted() -> None:
    [problem] = built("reservedIpRanges:\n- a\n-\n")[1].problems
    assert (problem.rule, problem.value, problem.mend) == ("not-text-value", "", None)


def test_what_the_service_fills_in_is_left_out_and_told() -> None:
    message, builder = built("state: JOB_STATE_RUNNING\njobSpec: {}\n")
    assert message == {"jobSpec": {}}
    what = "is filled in by the service, so it is left out"
    assert builder.remarks == [
        Problem(what, "", "remove it", ("state",), Location("x.yaml", 1, 1), "output-field",
                "warning")
    ]  # fmt: skip
    assert builder.remarks[0].mend == Mend("remove")


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


@pytest.mark.parametrize(
    ("text", "wanted", "what", "hint"),
    [
        ("studySpec: {}\n", CUSTOM_JOB, "is a HyperparameterTuningJob, not a CustomJob",
         "name it in the stack file under vertex-training:tuning"),
        ("jobSpec: {}\n", TUNING_JOB, "is a CustomJob, not a HyperparameterTuningJob",
         "name it in the stack file under vertex-training:jobs"),
        ("pipeline_spec: {}\n", None, "is a PipelineJob, not a CustomJob",
         "pipelines are compiled and submitted by their own tools"),
        ("taskGroups: []\n", TUNING_JOB, "is a job of Google Batch, not a HyperparameterTuningJob",
         "`vt import` of this file makes a job file of it, with backend: batch"),
    ],
)  # fmt: skip
def test_a_file_of_another_kind_is_one_mistake(
    text: str, wanted: Any, what: str, hint: str
) -> None:
    message, builder = built(text, wanted)
    assert message is None
    location = Location("x.yaml", 1, 1)
    assert builder.problems == [
        Problem(f"the file {what}", "", hint, (), location, "other-resource")
    ]
    assert builder.unreadable in ([()], [("jobSpec",)])


def test_a_file_with_mistakes_without_end_is_told_a_hundred_of_them() -> None:
    text = "".join(f"field{number}: 1\n" for number in range(150))
    assert len(built(text)[1].problems) == 100
    pools = "".join("- x\n" for _ in range(150))
    assert len(built(f"workerPoolSpecs:\n{pools}")[1].problems) == 100
    labels = "".join(f"  l{number}: 1\n" for number in range(150))
    assert len(built(f"labels:\n{labels}jobSpec: {{}}\n")[1].problems) == 100
