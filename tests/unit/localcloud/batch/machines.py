"""A home with one job of Batch, and machines that run it."""

from __future__ import annotations

from typing import Any

from localgcp.batch.records import BatchJob, State
from localgcp.batch.runnables import Machine
from localgcp.batch.volumes import Volumes
from localgcp.containers.host import ContainerHost
from localgcp.home import Home
from localgcp.inventory.store import BUCKET, Store
from localgcp.runner.environment import Folders
from localgcp.runner.gang.hosts import Host
from tests.unit.localcloud.conftest import PROJECT, TRAINER, set_grant

GCS = {"gcs": {"remotePath": "data"}, "mountPath": "/gcs/data"}
DISK = {"gcs": {"remotePath": "data/sub/"}, "mountPath": "/mnt/disk/"}


class Estate:
    """A home with a job; ``said`` is what its agent wrote."""

    def __init__(self, home: Home) -> None:
        self.home, self.store, self.said = home, Store(home.database), list[str]()
        (home.batch / "u").mkdir(parents=True)

    def job(self, group: Any = None, **spec: Any) -> BatchJob:
        body = {
            "taskGroups": [{"taskSpec": {"runnables": [], **spec}, **(group or {})}],
            "allocationPolicy": {"serviceAccount": {"email": TRAINER}},
        }
        name = "projects/1/locations/us-central1/jobs/j"
        return BatchJob(name, "u", PROJECT, "us-central1", body, State.RUNNING, [], "", "")

    def volumes(self, *volumes: Any) -> Volumes:
        job = self.job(volumes=[*volumes])
        return Volumes(job, self.home, self.store, "http://127.0.0.1:9", self.said.append)

    def machine(self, of_task: Any = None, volumes: Volumes | None = None, **spec: Any) -> Machine:
        place = self.home.batch / "u" / "task"
        folders = Folders(place / "work", place / "tmp", place / "gcs")
        for folder in (folders.work, folders.tmp):
            folder.mkdir(parents=True, exist_ok=True)
        return Machine(
            self.job(**spec), self.home, self.store, ContainerHost(self.home, 0),
            "http://127.0.0.1:9", volumes or self.volumes(), folders, Host("127.0.0.1", 1),
            of_task or {}, lambda *_a, **_k: None, self.said.append,
        )  # fmt: skip

    def bucket(self, name: str = "data", role: str | None = "roles/storage.objectViewer") -> None:
        self.store.put(BUCKET, name, PROJECT, {}, {"name": name, "project": PROJECT})
        (self.home.storage / name).mkdir(parents=True, exist_ok=True)
        if role:
            set_grant(self.store, f"b/{name}", role, TRAINER)
