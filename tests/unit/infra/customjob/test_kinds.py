"""The kinds of jobs, as the services spell each: names, messages, paths and labels."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.customjob import kinds
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, TUNING_JOB, JobKind


def test_the_kinds_are_those_of_the_services() -> None:
    assert (
        JobKind(
            message="CustomJob",
            spec="jobSpec",
            section="jobs",
            collection="customJobs",
            argument="custom_job",
            label_prefix="vt-",
            records="",
            backend="vertex",
            id_prefix="",
        )
        == CUSTOM_JOB
    )
    assert (
        JobKind(
            message="HyperparameterTuningJob",
            spec="trialJobSpec",
            section="tuning",
            collection="hyperparameterTuningJobs",
            argument="hyperparameter_tuning_job",
            label_prefix="vt-tuning-",
            records="tuning/",
            backend="vertex",
            id_prefix="",
        )
        == TUNING_JOB
    )
    assert (
        JobKind(
            message="Job",
            spec="jobSpec",
            section="jobs",
            collection="jobs",
            argument="job",
            label_prefix="vt-",
            records="",
            backend="batch",
            id_prefix="batch-",
        )
        == BATCH_JOB
    )
    assert kinds.KINDS == (CUSTOM_JOB, TUNING_JOB)


SHARED = {"displayName": "x", "labels": {"a": "b"}, "encryptionSpec": {"kmsKeyName": "k"}}


@pytest.mark.parametrize(
    ("kind", "message", "trial"),
    [
        (CUSTOM_JOB, {"jobSpec": {"a": 1}, "other": 2}, {"jobSpec": {"a": 1}, "other": 2}),
        (BATCH_JOB, {"jobSpec": {"a": 1}}, {"jobSpec": {"a": 1}}),
        (
            TUNING_JOB,
            {**SHARED, "trialJobSpec": {"a": 1}, "studySpec": {}, "maxTrialCount": 3},
            {**SHARED, "jobSpec": {"a": 1}},
        ),
        (TUNING_JOB, {"studySpec": {}}, {}),
    ],
)
def test_what_runs_is_the_message_or_that_of_a_trial(
    kind: JobKind, message: dict[str, Any], trial: dict[str, Any]
) -> None:
    assert kind.trial_of(message) == trial


@pytest.mark.parametrize(
    ("kind", "in_message", "in_trial"),
    [
        (CUSTOM_JOB, ("jobSpec", "a", 0), ("jobSpec", "a", 0)),
        (TUNING_JOB, ("trialJobSpec", "a", 0), ("jobSpec", "a", 0)),
        (TUNING_JOB, ("trialJobSpec",), ("jobSpec",)),
        (TUNING_JOB, ("studySpec", "jobs"), ("studySpec", "jobs")),
        (TUNING_JOB, (), ()),
    ],
)
def test_paths_of_messages_are_paths_of_trials(
    kind: JobKind, in_message: tuple[str | int, ...], in_trial: tuple[str | int, ...]
) -> None:
    assert kind.path_in_trial(in_message) == in_trial
    assert kind.path_in_message(in_trial) == in_message


def test_labels_of_the_program_have_keys_of_their_kind_and_come_back() -> None:
    labels = {"vt-run": "2", "team": "ml", "my-vt-run": "x"}
    sent = {"vt-tuning-run": "2", "team": "ml", "my-vt-run": "x"}
    assert CUSTOM_JOB.sent_labels(labels) == BATCH_JOB.sent_labels(labels) == labels
    assert TUNING_JOB.sent_labels(labels) == sent
    assert TUNING_JOB.labels_of({**sent, "vt-stack": "of another kind"}) == labels
    assert CUSTOM_JOB.labels_of({**labels, "vt-tuning-run": "3"}) == {
        **labels,
        "vt-tuning-run": "3",
    }


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("jobs",), CUSTOM_JOB),
        (("jobs", "vertex"), CUSTOM_JOB),
        (("jobs", "batch"), BATCH_JOB),
        (("tuning", "vertex"), TUNING_JOB),
    ],
)
def test_a_section_and_a_service_have_one_kind(arguments: tuple[str, ...], kind: JobKind) -> None:
    assert kinds.kind_in_section(*arguments) is kind


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ([], CUSTOM_JOB),
        (["jobSpec", "displayName"], CUSTOM_JOB),
        (["workerPoolSpecs"], CUSTOM_JOB),
        (["studySpec"], TUNING_JOB),
        (["displayName", "trialJobSpec"], TUNING_JOB),
    ],
)
def test_the_fields_of_a_file_tell_its_kind(fields: list[str], kind: JobKind) -> None:
    assert kinds.kind_of_fields(fields) is kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("projects/p/locations/r/customJobs/1", CUSTOM_JOB),
        ("projects/p/locations/r/hyperparameterTuningJobs/1", TUNING_JOB),
        ("projects/p/locations/r/jobs/dev-x", BATCH_JOB),
        ("projects/p/locations/r/models/1", None),
        ("projects/p/jobs/r/models/1", None),
        ("projects/p/locations/r/models/jobs", None),
        ("jobs", None),
        ("", None),
    ],
)
def test_a_resource_name_tells_the_kind_by_its_collection(name: str, kind: JobKind | None) -> None:
    assert kinds.kind_of_name(name) is kind


@pytest.mark.parametrize(
    ("id_", "kind"),
    [("batch-1", BATCH_JOB), ("0a1b", CUSTOM_JOB), ("x-batch-1", CUSTOM_JOB), ("", CUSTOM_JOB)],
)
def test_a_request_id_tells_the_service(id_: str, kind: JobKind) -> None:
    assert kinds.kind_of_request(id_) is kind
