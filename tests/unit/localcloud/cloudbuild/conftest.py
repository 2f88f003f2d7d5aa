"""Cloud Build in the test process: real gRPC, real sources, and a program in place of an engine."""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.cloud.devtools import cloudbuild_v1
from google.cloud.devtools.cloudbuild_v1.services.cloud_build.transports import (
    CloudBuildGrpcTransport,
)

from localgcp.apis.server import serve
from localgcp.cloudbuild.service import CloudBuild
from localgcp.inventory.store import ACCOUNT, SERVICE
from localgcp.vertex.log_entries import LogService
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import PROJECT, Cloud
from vertex_training.naming import Names

NAMES = Names(PROJECT, "", "us-central1", "local")
BUILDER = NAMES.account_email("image-build")
STAGING = f"b/{NAMES.bucket('staging')}"
REPOSITORY = f"projects/{PROJECT}/locations/us-central1/repositories/training-local"
IMAGE = f"{NAMES.repository()}/titanic"
READ, PUSH, LOG = (
    "roles/storage.objectViewer",
    "roles/artifactregistry.writer",
    "roles/logging.logWriter",
)
#: In place of an engine: does what the Dockerfile says, and its digest is that of the request.
PROGRAM = """
import hashlib, json, sys, tarfile, time
request = json.load(open(sys.argv[1]))
text = tarfile.open(request["archive"]).extractfile(request["dockerfile"]).read().decode()
for line in text.splitlines():
    word, _, rest = line.partition(" ")
    print(line, flush=True)
    if word == "SLEEP":
        time.sleep(float(rest))
    if word == "FAIL":
        sys.exit(int(rest))
essence = {key: request[key] for key in ("image", "tag", "build_args", "identity")}
digest = hashlib.sha256(json.dumps(essence).encode()).hexdigest()
open(sys.argv[2], "w").write(f"sha256:{digest}")
"""


class Builds:
    """A local cloud with Cloud Build, everything granted, and the official client."""

    def __init__(self, cloud: Cloud, address: str, service: CloudBuild) -> None:
        self.cloud, self.address, self.cloud_build = cloud, address, service
        self._channel = grpc.insecure_channel(address)
        self.client = cloudbuild_v1.CloudBuildClient(
            transport=CloudBuildGrpcTransport(channel=self._channel)
        )
        self.parent = f"projects/{PROJECT}/locations/us-central1"

    def close(self) -> None:
        self._channel.close()

    def all(self) -> list[cloudbuild_v1.Build]:
        """Every build there ever was."""
        return list(self.client.list_builds({"parent": self.parent, "project_id": PROJECT}))

    def states(self) -> list[str]:
        return sorted(build.status.name for build in self.all())

    def revoke(self, resource: str) -> None:
        self.cloud.store.delete_policy(resource)

    def put_source(self, dockerfile: str = "FROM x\n") -> Any:
        """An object with a source; returns Google's blob."""
        blob = self.bucket.blob("images/source.tar.gz")
        blob.upload_from_string(packed(dockerfile))
        return blob

    @property
    def bucket(self) -> Any:
        from localgcp.runner.gcsfuse import storage_client

        assert self.cloud.storage is not None
        return storage_client(self.cloud.storage.url).bucket(NAMES.bucket("staging"))


def tarred(dockerfile: str) -> bytes:
    """A context that is a Dockerfile."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        info = tarfile.TarInfo("Dockerfile")
        info.size = len(dockerfile)
        tar.addfile(info, io.BytesIO(dockerfile.encode()))
    return stream.getvalue()


def packed(dockerfile: str) -> bytes:
    """The same, compressed."""
    import gzip

    return gzip.compress(tarred(dockerfile), mtime=0)


@pytest.fixture
def make_builds(
    make_cloud: Callable[..., Cloud], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Builds]]:
    """Makes it once; ``program`` builds."""
    undo: list[Callable[[], object]] = []

    def make(program: tuple[str, ...] | None = ()) -> Builds:
        cloud = make_cloud(storage=True)
        assert cloud.storage is not None
        store = cloud.store
        for api in ("cloudbuild", "logging", "storage", "artifactregistry"):
            store.put(SERVICE, f"{PROJECT}/{api}.googleapis.com", PROJECT, {}, {})
        store.put(ACCOUNT, BUILDER, PROJECT, {}, {"email": BUILDER})
        cloud.bucket(NAMES.bucket("staging"))
        for place, role in ((STAGING, READ), (REPOSITORY, PUSH), (f"projects/{PROJECT}", LOG)):
            cloud.grant(place, role, f"serviceAccount:{BUILDER}")
        file = tmp_path / "engine.py"
        file.write_text(PROGRAM)
        service = CloudBuild(
            cloud.home,
            store,
            cloud.storage.url,
            dict,
            program=() if program is None else program or (sys.executable, str(file)),
        )
        logs = LogService(cloud.home, store, cloud.jobs, service.entries())
        jobs = JobService(store, cloud.jobs, cloud.scheduler)
        server = serve([jobs, logs, service], 0)
        made = Builds(cloud, f"127.0.0.1:{server.port}", service)
        undo.extend([lambda: server.stop(None).wait(), service.stop, made.close])
        monkeypatch.setenv("VERTEX_EMULATOR_HOST", made.address)
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.storage.url)
        return made

    yield make
    for step in reversed(undo):
        step()


@pytest.fixture
def builds(make_builds: Callable[..., Builds]) -> Builds:
    return make_builds()
