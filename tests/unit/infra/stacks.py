"""Small stacks with a network or reservations, as a stack file would say them."""

from pathlib import Path
from typing import Any

from vertex_training.settings.model import Settings
from vertex_training.stack import Stack, read_settings

BASE = {
    "stack": "prod",
    "project": "acme-ml-prod",
    "region": "us-central1",
    "projectNumber": "109876543210",
    "submitters": ["group:ml@example.com"],
}
PSC = {"mode": "psc", "subnet": {"range": "10.20.0.0/26"}}
HOST = {"hostProject": "acme-net-prod", "hostProjectNumber": "345678901234"}
HOST_NETWORK = "projects/acme-net-prod/global/networks/production"
HOST_SUBNET = "projects/acme-net-prod/regions/us-central1/subnetworks/training"
#: A tuning job of 60 trials, and the job of one trial.
FILE = """\
displayName: tune
maxTrialCount: 60
parallelTrialCount: 3
maxFailedTrialCount: 2
studySpec:
  metrics: [{metricId: accuracy, goal: MAXIMIZE}]
  parameters:
  - parameterId: learning_rate
    doubleValueSpec: {minValue: 1e-4, maxValue: 0.1}
trialJobSpec:
  serviceAccount: trainer-prod@acme-ml-prod.iam.gserviceaccount.com
  baseOutputDirectory: {outputUriPrefix: "gs://out/x/${job.requestId}"}
  scheduling: {timeout: 3600s}
  workerPoolSpecs:
  - machineSpec: {machineType: n1-standard-4}
    containerSpec: {imageUri: "eu.example/x/y@sha256:%s", args: [--epochs=5]}
""" % ("0" * 64)
JOB = FILE[FILE.index("  serviceAccount") :].replace("\n  ", "\n").removeprefix("  ")
H100 = {"zone": "us-central1-a", "machineType": "a3-megagpu-8g", "count": 5}


def stack(**changes):
    """Settings of the small stack with these changes."""
    return read_settings(BASE | changes, Path("/nonexistent"))


def unjudged(**changes: Any) -> Settings:
    """Settings of the small stack with these changes, whose rules were not asked."""
    return Settings.model_validate(BASE | changes)


def planned(**changes):
    """The small stack with these changes, and all that follows."""
    return Stack(stack(**changes), Path("/nonexistent"), {})
