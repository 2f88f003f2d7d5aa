"""Methods and messages are those of Google's own clients, of which no more is loaded."""

from __future__ import annotations

import subprocess
import sys

from tests.unit.localcloud.apis.served import METHODS

_VERTEX = "google.cloud.aiplatform.v1"
SERVED = {
    f"{_VERTEX}.JobService": (
        *("CreateCustomJob", "GetCustomJob", "ListCustomJobs", "CancelCustomJob"),
        *("DeleteCustomJob", "CreateHyperparameterTuningJob", "GetHyperparameterTuningJob"),
        *("ListHyperparameterTuningJobs", "CancelHyperparameterTuningJob"),
        "DeleteHyperparameterTuningJob",
    ),
    f"{_VERTEX}.PipelineService": (
        *("CreateTrainingPipeline", "GetTrainingPipeline", "ListTrainingPipelines"),
        "CancelTrainingPipeline",
    ),
    "google.longrunning.Operations": ("GetOperation", "ListOperations", "WaitOperation"),
    "google.logging.v2.LoggingServiceV2": ("ListLogEntries",),
    "google.cloud.secretmanager.v1.SecretManagerService": ("AccessSecretVersion",),
    "google.devtools.cloudbuild.v1.CloudBuild": (
        *("CreateBuild", "GetBuild", "ListBuilds", "CancelBuild"),
    ),
}
LOADED = """
import sys
from localgcp.vertex.service import JobService
from localgcp.pipelines import PipelineService
for service in (JobService, PipelineService):
    assert service.api.methods(service)
print(*(name for name in sys.modules if name.startswith("google.cloud.aiplatform_v1.services.")))
"""


def test_what_a_class_has_is_served() -> None:
    assert set(METHODS) == {f"{name}/{each}" for name, found in SERVED.items() for each in found}


def test_no_other_service_of_the_client_is_loaded() -> None:
    command = [sys.executable, "-c", LOADED]
    services = subprocess.check_output(command, text=True)
    loaded = {name.split(".")[4] for name in services.split()}
    assert loaded == {"job_service", "pipeline_service"}
    assert "client" not in {name.split(".")[-1] for name in services.split()}
