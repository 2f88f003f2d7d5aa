"""Tuning jobs for tests: in the API's words, with a command that runs on this host."""

from __future__ import annotations

import sys
from typing import Any

from google.cloud import aiplatform_v1 as vertex

from localgcp.tuning.records import TuningTable
from tests.unit.localcloud.conftest import PARENT, Cloud, command_job, wait_until

JobState = vertex.JobState
TrialState = vertex.Trial.State

#: Reports ``accuracy`` = 1 - (lr - 0.3)², as the package cloudml-hypertune does.
REPORT = """
import json, os, sys
args = dict(zip(sys.argv[1::2], sys.argv[2::2]))
score = 1 - (float(args["--lr"]) - 0.3) ** 2
path = os.environ["CLOUD_ML_HP_METRIC_FILE"]
report = {"timestamp": 1.5, "trial": os.environ["CLOUD_ML_TRIAL_ID"], "accuracy": str(score),
          "global_step": "7", "checkpoint_path": ""}
with open(path, "a") as file:
    print(json.dumps(report), file=file)
"""
LR: dict[str, Any] = {
    "parameter_id": "lr",
    "double_value_spec": {"min_value": 0.0001, "max_value": 1},
    "scale_type": "UNIT_LOG_SCALE",
}


def python(code: str, *arguments: str, **spec: Any) -> dict[str, Any]:
    """A ``trial_job_spec`` that runs Python code."""
    return command_job(sys.executable, "-c", code, *arguments, **spec)["job_spec"]


def tuning(
    spec: dict[str, Any] | None = None,
    *,
    trials: int = 4,
    parallel: int = 2,
    parameters: list[dict[str, Any]] | None = None,
    study: dict[str, Any] | None = None,
    **job: Any,
) -> dict[str, Any]:
    """A tuning job; ``study`` and further fields are added to it."""
    return {
        "display_name": "tuned",
        "max_trial_count": trials,
        "parallel_trial_count": parallel,
        "study_spec": {
            "metrics": [{"metric_id": "accuracy", "goal": "MAXIMIZE"}],
            "parameters": [LR] if parameters is None else parameters,
            **(study or {}),
        },
        "trial_job_spec": python(REPORT) if spec is None else spec,
        **job,
    }


def submit(cloud: Cloud, job: dict[str, Any]) -> str:
    """Its name."""
    made = vertex.HyperparameterTuningJob(job)
    request = {"parent": PARENT, "hyperparameter_tuning_job": made}
    return cloud.client.create_hyperparameter_tuning_job(request=request).name


def get(cloud: Cloud, name: str) -> vertex.HyperparameterTuningJob:
    return cloud.client.get_hyperparameter_tuning_job(name=name)


ENDED = (
    JobState.JOB_STATE_SUCCEEDED,
    JobState.JOB_STATE_FAILED,
    JobState.JOB_STATE_CANCELLED,
)


def wait(cloud: Cloud, name: str, seconds: float = 60) -> vertex.HyperparameterTuningJob:
    """The tuning job, when it is over."""
    wait_until(lambda: get(cloud, name).state in ENDED, seconds)
    return get(cloud, name)


def run(cloud: Cloud, job: dict[str, Any], seconds: float = 60) -> vertex.HyperparameterTuningJob:
    return wait(cloud, submit(cloud, job), seconds)


def table(cloud: Cloud) -> TuningTable:
    return TuningTable(cloud.home.database)
