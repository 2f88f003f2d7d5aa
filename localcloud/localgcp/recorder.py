"""Record the requests of a program to Vertex AI; every job succeeds without running."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Self
from urllib.parse import unquote

import grpc
from google.protobuf import empty_pb2, json_format

from localgcp.apis.client import (
    Api,
    custom_job,
    hyperparameter_tuning_job,
    job_service,
    pipeline_service,
    training_pipeline,
)
from localgcp.apis.field_rules import json_name
from localgcp.apis.server import serve
from localgcp.clients import cloud_sdk, python_clients
from localgcp.errors import ApiError
from localgcp.faults.table import FaultTable
from localgcp.home.environment import without_real_cloud
from localgcp.home.servers import choose_port
from localgcp.storage.emulator import StorageEmulator
from localgcp.storage.proxy import StorageFront
from localgcp.storage.requests import StorageRequest
from localgcp.vertex.records import new_id, now


@dataclass(frozen=True)
class RecordedRequest:
    """A request to create a job."""

    kind: str
    """Name of the message, such as ``CustomJob``."""
    parent: str
    """Path ``projects/PROJECT/locations/REGION``."""
    message: dict[str, Any]
    """The message in the API's JSON form."""


@dataclass(frozen=True)
class _Kind:
    message: Any
    noun: str
    """Name in methods, such as ``custom_job`` in ``create_custom_job``."""
    state: str = "JOB_STATE_SUCCEEDED"
    """State of a succeeded job."""
    has_cancel: bool = True

    @property
    def collection(self) -> str:
        return f"{json_name(self.noun)}s"


_JOBS: Final = (
    _Kind(custom_job.CustomJob, "custom_job"),
    _Kind(hyperparameter_tuning_job.HyperparameterTuningJob, "hyperparameter_tuning_job"),
)
_PIPELINE: Final = _Kind(
    training_pipeline.TrainingPipeline,
    "training_pipeline",
    "PIPELINE_STATE_SUCCEEDED",
    has_cancel=False,
)


@dataclass
class _Recorded:
    requests: list[RecordedRequest] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)

    def add(self, kind: _Kind, parent: str, sent: Any) -> Any:
        """Record a request and return a succeeded job."""
        name = f"{parent}/{kind.collection}/{new_id()}"
        body, time = json_format.MessageToDict(kind.message.pb(sent)), now()
        self.requests.append(RecordedRequest(kind.message.__name__, parent, body))
        answer = kind.message()
        times = dict.fromkeys(("createTime", "startTime", "endTime", "updateTime"), time)
        body = {**body, "name": name, "state": kind.state, **times}
        # Some messages do not have all of these fields.
        json_format.ParseDict(body, kind.message.pb(answer), ignore_unknown_fields=True)
        self.answers[name] = answer
        return answer

    def get(self, request: Any) -> Any:
        if request.name not in self.answers:
            raise ApiError(grpc.StatusCode.NOT_FOUND, f"{request.name} does not exist.")
        return self.answers[request.name]


class _Service:
    def __init__(self, recorded: _Recorded, api: Api, requests: ModuleType, *kinds: _Kind) -> None:
        self.api, self._recorded, self._requests = api, recorded, requests
        for kind in kinds:
            setattr(self, f"create_{kind.noun}", partial(self._create, kind))
            setattr(self, f"get_{kind.noun}", recorded.get)
            setattr(self, f"list_{kind.noun}s", partial(self._list, kind))
            if kind.has_cancel:
                setattr(self, f"cancel_{kind.noun}", lambda _request: empty_pb2.Empty())

    def _create(self, kind: _Kind, request: Any) -> Any:
        return self._recorded.add(kind, request.parent, getattr(request, kind.noun))

    def _list(self, kind: _Kind, request: Any) -> Any:
        entries = [
            job
            for name, job in self._recorded.answers.items()
            if name.startswith(f"{request.parent}/{kind.collection}/")
        ]
        response = getattr(self._requests, f"List{kind.message.__name__}sResponse")
        return response(**{f"{kind.noun}s": entries})


class _Storage:
    def __init__(self, folder: Path) -> None:
        files = (folder / "storage", folder / "storage.log", folder / "run")
        emulator = StorageEmulator(*files, private=True)
        faults = FaultTable(folder / "faults.sqlite")
        free_port = partial(choose_port, 0, "storage")
        self.front = StorageFront(emulator, faults, free_port, self._make_bucket)
        self._known = set[str]()
        self._lock = threading.Lock()

    def _make_bucket(self, request: StorageRequest) -> None:
        path = r"(?:/(?:upload|download|resumable/upload))?/storage/v1/b/([^/?]+)"
        match = re.match(path, request.target)
        name = unquote(match[1]) if match else ""
        # docs.cloud.google.com/storage/docs/buckets#naming
        if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", name):
            return
        with self._lock:  # clients send parallel requests to a bucket
            if name in self._known:
                return
            with closing(self.front.emulator.connection(timeout=10)) as connection:
                headers, body = {"Content-Type": "application/json"}, json.dumps({"name": name})
                connection.request("POST", "/storage/v1/b?project=local", body, headers)
                connection.getresponse().read()
            self._known.add(name)


class Recorder:
    """Records the requests of a program while the context is active; ``folder`` is for files."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._recorded = folder, _Recorded()
        self._storage = _Storage(folder)
        self.refused: list[str] = []
        """The calls that the recorder rejected, in order."""

    @property
    def requests(self) -> list[RecordedRequest]:
        """Return the requests to create jobs, in order."""
        return self._recorded.requests

    @property
    def buckets(self) -> Path:
        """Return the folder with uploaded objects as files ``BUCKET/OBJECT``."""
        return self._storage.front.emulator.root

    @property
    def ports(self) -> tuple[int, int]:
        """Return the ports of Vertex AI and Cloud Storage at 127.0.0.1."""
        return self._server.port, self._storage.front.port

    def __enter__(self) -> Self:
        (self._folder / "run").mkdir(0o700, parents=True)
        self._storage.front.start(choose_port(0, "storage"))
        vertex, recorded = "google.cloud.aiplatform_v1", self._recorded
        apis: Any = [
            _Service(recorded, Api(vertex, "job_service"), job_service, *_JOBS),
            _Service(recorded, Api(vertex, "pipeline_service"), pipeline_service, _PIPELINE),
        ]
        sockets = self._folder / "sockets"
        refused = self.refused.append
        self._server = serve(apis, 0, (), sockets, self._refuse, refused, takes_beta=True)
        cloud_sdk.write_settings(self._folder / "cloud-sdk")
        python_clients.write_settings(self._folder / "cloud-sdk")
        return self

    def _refuse(self, verb: str, target: str, _body: bytes, _connection: str = "") -> None:
        self.refused.append(f"{verb} {target.partition('?')[0][:300]}")

    def __exit__(self, *_: object) -> None:
        self._server.stop(0)  # do not wait: gRPC sometimes does not report a server's end
        self._storage.front.stop()

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return ``env`` with variables that redirect Python clients, gcloud and gsutil."""
        folder, (vertex, storage) = self._folder / "cloud-sdk", self.ports
        return {
            **without_real_cloud(env),
            # A client that is not redirected must fail instead of calling Google Cloud.
            "GOOGLE_APPLICATION_CREDENTIALS": str(folder / "no-credentials.json"),
            python_clients.VERTEX: f"127.0.0.1:{vertex}",
            python_clients.STORAGE: self._storage.front.url,
            **cloud_sdk.environment(folder, storage, vertex),
            **python_clients.environment(folder, env),
        }
