"""The kinds of jobs, as the services spell each: names, messages, paths and labels."""

from __future__ import annotations

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
