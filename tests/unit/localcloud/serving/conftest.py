"""Models and endpoints in the test process: real gRPC, real storage, containers as processes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.cloud import aiplatform_v1 as vertex
from google.cloud.aiplatform_v1.services.endpoint_service import transports as endpoint_transports
from google.cloud.aiplatform_v1.services.model_service import transports as model_transports
from google.cloud.aiplatform_v1.services.prediction_service import transports as predictions

from localgcp.apis.server import serve
from localgcp.containers.host import ContainerHost
from localgcp.faults.calls import CallFaults
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.store import ACCOUNT, BUCKET, SERVICE, Binding, Store
from localgcp.runner.gcsfuse import storage_client
from localgcp.runner.programs import CloudHost
from localgcp.serving.deployments import Host, Timing
from localgcp.serving.service import Serving
from localgcp.storage.emulator import StorageEmulator
from localgcp.tuning.records import TuningTable
from localgcp.tuning.service import TuningService
from localgcp.vertex.collections import ResourceTable
from localgcp.vertex.records import JobTable
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import OFTEN, free_port
from vertex_training.naming import local_project_number

PROJECT = "local-training"
PLACE = f"projects/{PROJECT}/locations/us-central1"
NUMBERED = f"projects/{local_project_number(PROJECT)}/locations/us-central1"
BUCKET_NAME = "local-training-artifacts"
TRAINER = f"trainer@{PROJECT}.iam.gserviceaccount.com"
#: No image of a local project: its command runs on this machine.
IMAGE = "us-docker.pkg.dev/vertex-ai/prediction/sklearn-cpu.1-6:latest"
PROGRAM = Path(__file__).with_name("model_server.py")
MACHINE = {"machine_type": "n1-standard-2"}
SHORT = Timing(health=0.2, tries=3, startup=0.05, restart=0.2, drain=20.0)


class _NoScheduler:
    def submit(self, job_id: str) -> None: ...
    def cancel(self, job_id: str) -> None: ...
    def wake(self) -> None: ...


def container(*words: str, **more: Any) -> dict[str, Any]:
    """A containerSpec whose server behaves as the words say (``model_server``)."""
    command = [sys.executable, str(PROGRAM), *words]
    return {"image_uri": IMAGE, "command": command, **more}


@dataclass
class World:
    """A local cloud with models and endpoints, by the official clients."""

    home: Home
    store: Store
    storage_url: str
    serving: Serving
    channel: grpc.Channel
    port: int
    models: vertex.ModelServiceClient = field(init=False)
    endpoints: vertex.EndpointServiceClient = field(init=False)
    predictions: vertex.PredictionServiceClient = field(init=False)

    def __post_init__(self) -> None:
        channel = self.channel
        grpc_models = model_transports.ModelServiceGrpcTransport(channel=channel)
        grpc_endpoints = endpoint_transports.EndpointServiceGrpcTransport(channel=channel)
        grpc_predictions = predictions.PredictionServiceGrpcTransport(channel=channel)
        self.models = vertex.ModelServiceClient(transport=grpc_models)
        self.endpoints = vertex.EndpointServiceClient(transport=grpc_endpoints)
        self.predictions = vertex.PredictionServiceClient(transport=grpc_predictions)

    def grant(self, resource: str, role: str, account: str) -> None:
        """Give an account a role on a resource."""
        policy = self.store.policy(resource)
        bindings = (*policy.bindings, Binding(role, (f"serviceAccount:{account}",)))
        self.store.set_policy(resource, bindings, expected_etag=policy.etag)

    def write(self, name: str, text: str, bucket: str = BUCKET_NAME) -> None:
        """Write an object."""
        storage_client(self.storage_url).bucket(bucket).blob(name).upload_from_string(text)

    def begin_upload(self, *words: str, id_: str = "doubler", slope: int = 2, **more: Any) -> Any:
        """The operation that uploads a version whose artifacts have this slope."""
        folder = f"runs/{slope}/model"
        self.write(f"{folder}/model.json", f'{{"slope": {slope}}}')
        model = {
            "display_name": id_,
            "container_spec": container(*words),
            "artifact_uri": f"gs://{BUCKET_NAME}/{folder}",
            **more,
        }
        try:
            parent = {"parent_model": self.models.get_model(name=f"{PLACE}/models/{id_}").name}
        except Exception:
            parent = {"model_id": id_}
        return self.models.upload_model({"parent": PLACE, "model": model, **parent})

    def upload(self, *words: str, **more: Any) -> str:
        """``…/models/ID@VERSION`` of a new version."""
        made = self.begin_upload(*words, **more).result(timeout=60, polling=OFTEN)
        return f"{made.model}@{made.model_version_id}"

    def endpoint(self, id_: str = "77", **more: Any) -> str:
        """The name of a new endpoint."""
        body = {"display_name": "doubler", **more}
        request = {"parent": PLACE, "endpoint": body, "endpoint_id": id_}
        made: Any = self.endpoints.create_endpoint(request)
        return made.result(timeout=60, polling=OFTEN).name

    def begin_deploy(
        self, endpoint: str, model: str, id_: str, split: dict[str, int] | None = None, **more: Any
    ) -> Any:
        """The operation that deploys a version under an id."""
        resources = {"machine_spec": MACHINE, "min_replica_count": 1, "max_replica_count": 1}
        resources |= more.pop("resources", {})
        deployed = {"id": id_, "model": model, "dedicated_resources": resources, **more}
        request = {"endpoint": endpoint, "deployed_model": deployed, "traffic_split": split or {}}
        return self.endpoints.deploy_model(request)

    def deploy(self, *args: Any, **more: Any) -> Any:
        """As ``begin_deploy``, and wait for its end."""
        return self.begin_deploy(*args, **more).result(timeout=120, polling=OFTEN)

    def undeploy(self, endpoint: str, id_: str, split: dict[str, int] | None = None) -> Any:
        request = {"endpoint": endpoint, "deployed_model_id": id_, "traffic_split": split or {}}
        return self.endpoints.undeploy_model(request).result(timeout=60, polling=OFTEN)

    def set_split(self, endpoint: str, split: dict[str, int]) -> Any:
        body = {"name": endpoint, "traffic_split": split}
        mask = {"paths": ["traffic_split"]}
        return self.endpoints.update_endpoint({"endpoint": body, "update_mask": mask})

    def split(self, endpoint: str) -> dict[str, int]:
        return dict(self.endpoints.get_endpoint(name=endpoint).traffic_split)

    def predict(self, endpoint: str, *instances: Any) -> Any:
        return self.predictions.predict(endpoint=endpoint, instances=list(instances))


@pytest.fixture
def make_world(home: Home) -> Iterator[Callable[..., World]]:
    """Makes local clouds over the same files, one after the other; the last is stopped."""
    undo: list[Callable[[], object]] = []

    def stop() -> None:
        while undo:
            undo.pop()()

    def make(*, timing: Timing = SHORT) -> World:
        stop()
        emulator = StorageEmulator(home.storage, home.storage_log, home.children)
        emulator.start(free_port())
        undo.append(emulator.stop)
        store, port = Store(home.database), free_port()
        jobs = JobService(store, JobTable(home.database), _NoScheduler())
        url = f"http://127.0.0.1:{port}/"
        machine = CloudHost(home, store, ContainerHost(home, 0), emulator.url, url)
        host = Host(machine, free_port, timing)
        faults = FaultTable(home.faults)
        serving = Serving(jobs, ResourceTable(home.database), host, faults)
        calls = CallFaults(faults, jobs.jobs, threading.Event())
        tuning = TuningService(jobs, TuningTable(home.database), _NoScheduler())
        server = serve([jobs, tuning, *serving.services], port, [calls])
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        undo.extend([serving.stop, lambda: server.stop(None).wait(), channel.close])
        store.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
        store.put(ACCOUNT, TRAINER, PROJECT, {}, {"email": TRAINER})
        known = {"name": BUCKET_NAME, "project": PROJECT, "location": "US-CENTRAL1"}
        store.put(BUCKET, BUCKET_NAME, PROJECT, {}, known)
        client = storage_client(emulator.url)
        if not client.bucket(BUCKET_NAME).exists():
            client.create_bucket(BUCKET_NAME)
        serving.start()
        return World(home, store, emulator.url, serving, channel, port)

    yield make
    stop()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()
