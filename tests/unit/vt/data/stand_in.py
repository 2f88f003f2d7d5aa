"""The emulator of Cloud Storage, with the buckets of stack ``local`` of a project."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from google.cloud import storage

from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.runner.gcsfuse import storage_client
from localgcp.storage.emulator import StorageEmulator
from localgcp.storage.proxy import StorageFront
from tests import fixture_project
from tests.unit.infra.snapshots.fakes import Cloud, Process
from tests.unit.localcloud.conftest import free_port
from vertex_training import stack as stacks
from vertex_training.snapshots.protocol import take_snapshot

BUCKET = "local-training-data-local"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    made = Home(tmp_path_factory.mktemp("home"), fixture_project.ROOT)
    made.create()
    return made


@pytest.fixture(scope="module")
def front(home: Home) -> Iterator[StorageFront]:
    emulator = StorageEmulator(home.storage, home.storage_log, home.children)
    made = StorageFront(emulator, FaultTable(home.faults), free_port)
    made.start(free_port())
    yield made
    made.stop()


@pytest.fixture
def bucket(
    front: StorageFront, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[storage.Bucket]:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", front.url)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "checkout").mkdir()
    monkeypatch.chdir(fixture_project.copy_project(tmp_path / "checkout"))
    client = storage_client(front.url)
    made = [client.create_bucket(name) for name in (BUCKET, BUCKET.replace("data", "artifacts"))]
    yield made[0]
    for each in made:
        for blob in each.list_blobs():
            blob.delete()
        each.delete()


class OtherRows(Cloud):
    """A later cloud, whose exports have one part more."""

    def write_part(self, job: str, count: int) -> None:
        super().write_part(job, count + 1)


class Objects:
    """The objects of the bucket, for sessions."""

    def __init__(self, bucket: storage.Bucket, faults: FaultTable) -> None:
        self.bucket, self.faults = bucket, faults

    def put(self, name: str, text: str = "x") -> None:
        self.bucket.blob(name).upload_from_string(text)

    def list(self) -> str:
        return "".join(f"{blob.name}\n" for blob in self.bucket.list_blobs())

    def refuse(self, method: str, code: str = "403") -> None:
        self.faults.clear()
        if method:
            self.faults.add(Fault.parse(service="storage", kind="error", code=code, method=method))

    def take(self, later: str = "") -> str:
        """Store what a snapshot of the declared run leaves; returns its id."""
        request = stacks.load(Path.cwd(), "local").snapshots["clicks"]
        cloud = OtherRows() if later else Cloud()
        if later:
            cloud.tick(3600)
        process = Process(cloud, request)
        take_snapshot(request, process.ports, environment=process.environment)
        for name, (content, _) in cloud.objects.items():
            self.bucket.blob(name).upload_from_string(content)
        return str(request.request_id)


@pytest.fixture
def objects(bucket: storage.Bucket, home: Home) -> Objects:
    return Objects(bucket, FaultTable(home.faults))
