"""Containers of a DeployedModel: their variables, which one answers, how they end."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from localgcp.containers.host import ContainerHost
from localgcp.errors import ApiError, ServerStoppingError
from localgcp.home import Home
from localgcp.serving import deployments
from localgcp.serving.deployments import Deployment, Deployments, Host
from localgcp.serving.replicas import Timing

ENDPOINT = "projects/123/locations/us-central1/endpoints/77"
MACHINE = {"machineType": "g2-standard-4"}
DEPLOYED = {
    "id": "5",
    "displayName": "one",
    "serviceAccount": "a@b",
    "dedicatedResources": {"machineSpec": MACHINE, "minReplicaCount": 2},
}
CONTAINER = {"imageUri": "docker.io/x:1", "command": ["serve", "$(AIP_HTTP_PORT)"],
             "env": [{"name": "MINE", "value": "$(AIP_ENDPOINT_ID)"}]}  # fmt: skip
VERSION: dict[str, Any] = {"containerSpec": CONTAINER, "artifactCopy": "gs://copy/m"}


class Replica:
    """In place of a container: it is what the test says."""

    made: list[Replica]

    def __init__(self, launch: Any, choose_port: Any, **given: Any) -> None:
        self.launch, self.choose_port, self.given = launch, choose_port, given
        self.log = given["log"]
        self.healthy, self.failure, self.busy = False, "", 0
        self.stopped = threading.Event()
        self.calls: list[str] = []
        self.made.append(self)

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    Replica.made = []
    monkeypatch.setattr(deployments, "Replica", Replica)
    monkeypatch.setattr(deployments, "_POLL_SECONDS", 0.001)
    home = Home(tmp_path, tmp_path)
    url = "http://127.0.0.1:9/"
    return Host(home, ContainerHost(home, 0), "http://s:1", url, lambda: 8080, Timing(drain=0.05))


@pytest.mark.parametrize("name", ["one", ""])
def test_a_container_is_made_ready_as_a_job_of_its_own(
    host: Host, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    deployed = DEPLOYED if name else {k: v for k, v in DEPLOYED.items() if k != "displayName"}
    given: dict[str, Any] = {}

    def prepare(record: Any, **more: Any) -> Any:
        given.update(more, record=record)
        raise ServerStoppingError

    monkeypatch.setattr(deployments, "Preparation", prepare)
    Deployment(host, ENDPOINT, deployed, VERSION).scale(1)
    [made] = Replica.made
    with pytest.raises(ServerStoppingError), made.launch(1):
        pass
    record, base = given.pop("record"), host.home.serving / "77-5" / "0"
    assert (record.project, record.region, record.display_name) == ("123", "us-central1", name)
    assert record.spec == {"workerPoolSpecs": [{"containerSpec": CONTAINER}]}
    assert record.state == "JOB_STATE_RUNNING"
    assert given == {
        "folder": base,
        "tmp": base / "tmp",
        "log": made.log,
        "storage_url": "http://s:1",
        "own_mount": False,
        "containers": host.containers,
        "home": host.home,
        "cancelled": made.stopped,
    }


def failure(made: Deployment, wanted: int = 2) -> tuple[str, str]:
    with pytest.raises(ApiError) as failed:
        made.wait_healthy(wanted, threading.Event())
    return failed.value.code.name, failed.value.message


def test_deployments_of_a_server_end_with_it(host: Host) -> None:
    all_ = Deployments(host)
    made = all_.start(ENDPOINT, DEPLOYED, VERSION)
    assert len(Replica.made) == 2
    assert all_.get(ENDPOINT, "5") is made
    assert all_.get(ENDPOINT, "6") is None
    all_.end(ENDPOINT, "6")
    all_.end(ENDPOINT, "5")
    assert made.closed
    assert all_.get(ENDPOINT, "5") is None
    again = all_.start(ENDPOINT, DEPLOYED, VERSION)
    Replica.made[-1].busy = 1
    object.__setattr__(host, "timing", Timing(drain=60.0))
    began = time.monotonic()
    all_.stop()
    assert time.monotonic() - began < 20
    assert again.closed
    assert Replica.made[-1].calls == ["start", "stop"]
    with pytest.raises(ServerStoppingError):
        all_.start(ENDPOINT, DEPLOYED, VERSION)
