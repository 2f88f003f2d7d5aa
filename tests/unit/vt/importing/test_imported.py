"""An imported job: its key, its message by either spelling, and the folder that the client made."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training.located_yaml import document
from vertex_training_cli.importing.imported import (
    ImportedJob,
    Note,
    Scalar,
    as_written,
    free_key,
    from_message,
    key_of,
    name_by_request,
    staged,
    to_key,
    with_api_names,
)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("train", "train"), ("Fine_tune: it!", "fine-tune-it"), ("--a--", "a"), ("Ärger", "rger"),
        ("8 GPUs", "job-8-gpus"), ("a${job.requestId}", "a"), ("${job.requestId}", "job-requestid"),
        ("DOE_nn_<RUN_ID>", "doe-nn"), ("<YOUR_NAME>", "your-name"), ("", "job"), ("…", "job"),
        ("a" * 36, "a" * 36), ("a" * 37, "a" * 36), (f"{'a' * 35}-b", "a" * 35),
        ("1" * 36, f"job-{'1' * 36}"), ("<a>", "a"),
    ],
)  # fmt: skip
def test_a_key_is_lower_case_with_hyphens_and_not_too_long(text: str, key: str) -> None:
    assert key_of(text) == key


def test_a_text_without_a_key_has_the_default() -> None:
    assert (key_of("", ""), key_of("!", "bucket"), key_of("1", "bucket")) == (
        "", "bucket", "bucket-1"
    )  # fmt: skip


def test_a_name_that_is_no_key_is_refused_with_one_that_is() -> None:
    assert to_key("a-1") == "a-1"
    for name in ("A", "a_b", "1a", "../a", "a" * 40):
        with pytest.raises(CommandError) as told:
            to_key(name)
        assert (told.value.message, told.value.hint) == (
            f"{name!r} is no name of a job.", f"write {key_of(name)}"
        )  # fmt: skip


@pytest.mark.parametrize(
    ("taken", "found"),
    [((), "a"), (("b",), "a"), (("a",), "a-2"), (("a", "a-2", "a-4"), "a-3")],
)
def test_a_key_that_is_taken_gets_a_number(taken: tuple[str, ...], found: str) -> None:
    assert free_key("a", taken) == found


def test_names_are_those_of_the_api_and_what_is_none_is_left_out() -> None:
    given = {"job_spec": ({"a_b": None, "c_d": [{"e_f": 0}]},), 3: "g_h", "none": None}
    assert with_api_names(given) == {"jobSpec": [{"cD": [{"eF": 0}]}], "3": "g_h"}


POOLS = {"workerPoolSpecs": []}
ALONE = (
    "of a tuning job the source has the job of its trials alone: without studySpec and "
    "maxTrialCount it is imported as a job"
)


@pytest.mark.parametrize(
    ("message", "job"),
    [
        ({"worker_pool_specs": []}, ImportedJob("default", POOLS)),
        ({"display_name": "A b", "job_spec": POOLS}, ImportedJob("a-b", POOLS)),
        ({"jobSpec": POOLS, "labels": {"my_label": "1"}, "encryption_spec": {"kms_key_name": "k"}},
         ImportedJob("default", POOLS, labels={"my_label": "1"}, encryption_key="k")),
        ({"worker_pool_specs": [], "labels": {"a": 1}},
         ImportedJob("default", POOLS, labels={"a": "1"})),
        ({"jobSpec": [{}], "labels": "<YOUR_LABELS>", "encryptionSpec": "<YOUR_KEY>"},
         ImportedJob("default", {"workerPoolSpecs": [{}]}, labels={"labels": "<YOUR_LABELS>"},
                     encryption_key="<YOUR_KEY>")),
        ({"jobSpec": POOLS, "labels": Scalar("null"), "encryptionSpec": Scalar("~")},
         ImportedJob("default", POOLS)),
        ({"jobSpec": POOLS, "labels": None, "encryptionSpec": None}, ImportedJob("default", POOLS)),
        ({"jobSpec": POOLS, "state": "x", "new_field": 1, "webAccessUris": {}},
         ImportedJob("default", POOLS, remarks=[
             "newField is no field of a CustomJob, and is left out"])),
        ({"trialJobSpec": POOLS, "new_field": 1}, ImportedJob("default", POOLS, {"newField": 1})),
        ({"trial_job_spec": POOLS, "max_trial_count": 2, "displayName": "S"},
         ImportedJob("s", POOLS, {"maxTrialCount": 2, "displayName": "S"})),
        ({"trialJobSpec": POOLS}, ImportedJob("default", POOLS, remarks=[ALONE])),
        ({"trial_job_spec": POOLS, "displayName": "S", "labels": {"a": "b"}},
         ImportedJob("s", POOLS, labels={"a": "b"}, remarks=[ALONE])),
        ({"jobSpec": POOLS, "state": "x"}, ImportedJob("default", POOLS)),
    ],
)  # fmt: skip
def test_a_message_is_a_job_by_either_spelling(message: dict[str, Any], job: ImportedJob) -> None:
    assert from_message(message, "default") == job


SAID = "the client makes a folder in {} for each job: it is named by the request id"


@pytest.mark.parametrize(
    ("bucket", "folder"),
    [("acme", "gs://acme"), ("gs://acme", "gs://acme"), ("gs://acme/", "gs://acme"),
     ("acme/sub/", "gs://acme/sub")],
)  # fmt: skip
def test_the_clients_folder_is_named_by_the_request(bucket: str, folder: str) -> None:
    job = ImportedJob("j", {})
    staged(job, bucket)
    prefix = f"{folder}/${{job.name}}/${{job.requestId}}"
    assert job.spec == {"baseOutputDirectory": {"outputUriPrefix": prefix}}
    given = bucket if bucket.startswith("gs://") else f"gs://{bucket}"
    assert job.remarks == [SAID.format(given)]


@pytest.mark.parametrize(
    ("prefix", "is_named"),
    [
        ("gs://b/aiplatform-custom-job-2026-01-02-03:04:05.678", True),
        ("gs://b/aiplatform-custom-training-2026-01-02-03:04:05.678/", True),
        ("gs://b/aiplatform-custom-job-mine", False),
        ("gs://b/aiplatform-custom-job-2026-01-02-03:04:05.678/model", False),
        ("gs://b/custom-job-2026-01-02-03:04:05.678", False),
        (3, False),
    ],
)
def test_a_folder_that_has_the_time_is_the_clients(prefix: Any, is_named: bool) -> None:
    job = ImportedJob("j", {"baseOutputDirectory": {"outputUriPrefix": prefix}})
    name_by_request(job)
    named = "gs://b/${job.name}/${job.requestId}" if is_named else prefix
    assert job.spec == {"baseOutputDirectory": {"outputUriPrefix": named}}
    assert job.remarks == ([SAID.format("gs://b")] if is_named else [])


@pytest.mark.parametrize("output", [None, "gs://b/aiplatform-custom-job-2026-01-02-03:04:05.678"])
def test_an_output_of_another_shape_stays(output: Any) -> None:
    job = ImportedJob("j", {"baseOutputDirectory": output})
    name_by_request(job)
    assert job == ImportedJob("j", {"baseOutputDirectory": output})


def test_scalars_are_as_they_are_written() -> None:
    text = b"a: 0x1F\nb: [1e-3, yes, ~, '1', text]\nc: {d: 1.50}\n"
    found = as_written(document.read(text, "f").root)
    assert found == {"a": "0x1F", "b": ["1e-3", "yes", "~", "1", "text"], "c": {"d": "1.50"}}
    kinds = [type(each) for each in (found["a"], *found["b"][2:], found["c"]["d"])]
    assert kinds == [Scalar, Scalar, str, str, Scalar]


def test_a_note_is_a_sentence_with_its_place() -> None:
    assert str(Note("said", "f, line 3")) == "said (f, line 3)"
    assert sorted([Note("b", "f"), Note("a", "g")]) == [Note("a", "g"), Note("b", "f")]
    assert Note("a", "f").guessed is False
