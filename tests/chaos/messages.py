"""The smallest messages of the chaos suites, one of each kind of job."""

from __future__ import annotations

from typing import Any, Final

from vertex_training.customjob.kinds import BATCH_JOB, TUNING_JOB, JobKind

#: Who runs the jobs of Batch, which have to name somebody.
TRAINER: Final = "trainer@local-chaos.iam.gserviceaccount.com"
_POOL: Final = {
    "replicaCount": 1,
    "machineSpec": {"machineType": "n1-standard-4"},
    "containerSpec": {"imageUri": "python:3.11", "command": ["sleep", "3600"]},
}
#: What a tuning job has beside the spec of its trials.
_STUDY: Final = {
    "maxTrialCount": 4,
    "parallelTrialCount": 2,
    "studySpec": {
        "algorithm": "RANDOM_SEARCH",
        "metrics": [{"metricId": "a", "goal": "MAXIMIZE"}],
        "parameters": [{"parameterId": "x", "doubleValueSpec": {"minValue": 0, "maxValue": 1}}],
    },
}


def smallest(kind: JobKind, name: str) -> dict[str, Any]:
    """Return a job of this kind in the API's JSON form."""
    study = _STUDY if kind is TUNING_JOB else {}
    account = {"serviceAccount": TRAINER} if kind is BATCH_JOB else {}
    return {"displayName": name, kind.spec: {"workerPoolSpecs": [_POOL], **account}, **study}
