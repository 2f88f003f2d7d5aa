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
from localgcp.runner.programs import HostProgram
from localgcp.serving import deployments
from localgcp.serving.deployments import Deployment, Deployments, Host, log_path
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


def deployment(host: Host, version: dict[str, Any] = VERSION) -> Deployment:
    return Deployment(host, ENDPOINT, DEPLOYED, version)


def test_a_container_gets_the_services_variables_and_its_own(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/none")  # where there is no gcloud
    deployment(host).scale(1)
    [made] = Replica.made
    folder = host.home.serving / "77-5" / "0"
    assert made.choose_port() == 8080
    assert made.given == {
        "health_route": "/v1/endpoints/77/deployedModels/5",
        "work": folder / "work",
        "log": made.log,
        "notes": host.home.children,
        "account": "a@b",
        "timing": host.timing,
    }
    assert made.log.path == host.home.serving / "logs" / "77" / "5-0.log"
    assert sorted(path.name for path in folder.iterdir()) == ["gcs", "tmp", "work"]
    with made.launch(8080) as launch:
        assert launch.argv == ["serve", "8080"]
        assert launch.env == {
            "PATH": "/none",
            "HOME": str(folder / "work"),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            "STORAGE_EMULATOR_HOST": "http://s:1",
            "MINE": "77",
            "PYTHONPATH": str(folder / "tmp" / "python"),
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": "http://127.0.0.1:9/",
            "BIGQUERY_EMULATOR_HOST": "http://127.0.0.1:9",
            "VERTEX_EMULATOR_HOST": "127.0.0.1:9",
            "AIP_HTTP_PORT": "8080",
            "AIP_HEALTH_ROUTE": "/v1/endpoints/77/deployedModels/5",
            "AIP_PREDICT_ROUTE": "/v1/endpoints/77/deployedModels/5:predict",
            "AIP_STORAGE_URI": "gs://copy/m",
            "AIP_ENDPOINT_ID": "77",
            "AIP_DEPLOYED_MODEL_ID": "5",
            "AIP_MACHINE_TYPE": "g2-standard-4",
            "AIP_ACCELERATOR_TYPE": "",
            "AIP_PROJECT_NUMBER": "123",
            "AIP_FRAMEWORK": "CUSTOM_CONTAINER",
            "AIP_MODE": "PREDICTION",
            "VERTEX_JOB_HOST": "127.0.0.1",
        }


def test_a_version_without_artifacts_has_an_empty_place_for_them(host: Host) -> None:
    deployment(host, {key: value for key, value in VERSION.items() if key != "artifactCopy"}).scale(
        1
    )
    [made] = Replica.made
    with made.launch(8080) as launch:
        assert launch.env["AIP_STORAGE_URI"] == ""


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


def test_a_container_may_have_no_account(host: Host) -> None:
    deployed = {key: value for key, value in DEPLOYED.items() if key != "serviceAccount"}
    Deployment(host, ENDPOINT, deployed, VERSION).scale(1)
    assert Replica.made[0].given["account"] == ""


def test_routes_are_the_containers_own_or_the_services(host: Host) -> None:
    default = deployment(host)
    assert default.predict_route == "/v1/endpoints/77/deployedModels/5:predict"
    own = {**VERSION, "containerSpec": {**CONTAINER, "predictRoute": "/p", "healthRoute": "/h"}}
    made = deployment(host, own)
    made.scale(1)
    assert made.predict_route == "/p"
    [replica] = Replica.made
    assert (replica.given["health_route"], replica.given["account"]) == ("/h", "a@b")
    with replica.launch(1) as launch:
        told = launch.env["AIP_PREDICT_ROUTE"], launch.env["AIP_HEALTH_ROUTE"]
    assert told == ("/p", "/h")


@pytest.mark.parametrize("more", [{}, {"drain": True}, {"drain": False}])
def test_what_is_undeployed_answers_what_it_was_asked_unless_the_server_stops(
    host: Host, monkeypatch: pytest.MonkeyPatch, more: dict[str, bool]
) -> None:
    ended: list[bool] = []
    monkeypatch.setattr(Deployment, "close", lambda _made, *, drain: ended.append(drain))
    all_ = Deployments(host)
    all_.start(ENDPOINT, DEPLOYED, VERSION)
    all_.end(ENDPOINT, "5", **more)
    assert ended == [more.get("drain", True)]


def test_replicas_are_added_and_taken_from_the_end(host: Host) -> None:
    made = deployment(host)
    made.scale(3)
    assert [each.calls for each in Replica.made] == [["start"]] * 3
    assert [each.log.path.name for each in Replica.made] == ["5-0.log", "5-1.log", "5-2.log"]
    made.scale(1)
    assert [each.calls for each in Replica.made] == [["start"], ["start", "stop"],
                                                     ["start", "stop"]]  # fmt: skip
    assert [each.stopped.is_set() for each in Replica.made] == [False, True, True]
    made.scale(2)
    assert len(Replica.made) == 4
    assert Replica.made[3].log.path.name == "5-1.log"
    Replica.made[3].busy = 1
    began = time.monotonic()
    made.scale(1)  # waits for the answer, as long as it may
    assert time.monotonic() - began >= 0.05
    assert Replica.made[3].calls == ["start", "stop"]


def test_the_healthy_replica_with_the_fewest_requests_answers(host: Host) -> None:
    made = deployment(host)
    made.scale(3)
    first, second, third = Replica.made
    with made.replica() as none:
        assert none is None
    second.healthy = third.healthy = True
    assert made.available == 2
    second.busy = 1
    with made.replica() as found:
        assert found is third  # type: ignore[comparison-overlap]
        assert third.busy == 1
    assert (first.busy, second.busy, third.busy) == (0, 1, 0)
    made.close(drain=False)
    assert made.closed is True
    with made.replica() as none:
        assert none is None


def test_a_deployment_is_waited_for_until_enough_are_healthy(host: Host) -> None:
    made = deployment(host)
    made.scale(2)
    Replica.made[0].healthy = True
    made.wait_healthy(1, threading.Event())
    stopping = threading.Event()
    stopping.set()
    made.wait_healthy(2, stopping)


def failure(made: Deployment, wanted: int = 2) -> tuple[str, str]:
    with pytest.raises(ApiError) as failed:
        made.wait_healthy(wanted, threading.Event())
    return failed.value.code.name, failed.value.message


def test_a_container_that_ends_fails_the_deployment(host: Host) -> None:
    made = deployment(host)
    made.scale(2)
    Replica.made[1].failure = "the container ended with exit code 3"
    log = host.home.serving / "logs" / "77" / "5-1.log"
    assert failure(made) == (
        "FAILED_PRECONDITION",
        "Model server exited unexpectedly: the container ended with exit code 3. "
        f"Model server logs can be found at {log}.",
    )


def test_a_container_that_takes_too_long_fails_the_deployment(host: Host) -> None:
    quick = {**VERSION, "containerSpec": {**CONTAINER, "deploymentTimeout": "0.01s"}}
    made = deployment(host, quick)
    made.scale(1)
    log = host.home.serving / "logs" / "77" / "5-0.log"
    assert failure(made, 1) == (
        "FAILED_PRECONDITION",
        "Model server never became ready. Please validate that your model file or container "
        f"configuration are valid. Model server logs can be found at {log}.",
    )


def test_half_an_hour_is_how_long_it_may_take(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 1800.0, 1800.1])
    monkeypatch.setattr(deployments.time, "monotonic", lambda: next(times))
    made = deployment(host)
    made.scale(1)
    assert "never became ready" in failure(made, 1)[1]
    assert next(times, None) is None


def test_requests_that_are_under_way_are_answered_before_the_end(host: Host) -> None:
    made = deployment(host)
    made.scale(2)
    replica, idle = Replica.made
    replica.healthy = True
    entered, left = threading.Event(), threading.Event()

    def ask() -> None:
        with made.replica():
            entered.set()
            left.wait(20)

    object.__setattr__(host, "timing", Timing(drain=20.0))
    asking = threading.Thread(target=ask)
    asking.start()
    assert entered.wait(20)
    ending = threading.Thread(target=made.close, kwargs={"drain": True})
    ending.start()
    ending.join(0.05)
    assert replica.calls == idle.calls == ["start"]
    left.set()
    ending.join(20)
    asking.join(20)
    assert replica.calls == ["start", "stop"]
    assert not (host.home.serving / "77-5").exists()


def test_the_end_waits_no_longer_than_it_may(host: Host) -> None:
    for drain in (True, False):
        made = deployment(host)
        made.scale(1)
        Replica.made[-1].busy = 1
        made.close(drain=drain)
        assert Replica.made[-1].calls == ["start", "stop"]


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


def test_a_log_outlives_its_replica(tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path)
    assert log_path(home, ENDPOINT, "5", 1) == home.serving / "logs" / "77" / "5-1.log"


def test_a_container_of_this_machine_has_no_mount_of_its_own(host: Host) -> None:
    made = deployment(host)
    made.scale(1)
    seen: list[HostProgram] = []
    close = HostProgram.close

    def closed(program: HostProgram) -> None:
        seen.append(program)
        close(program)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(HostProgram, "close", closed)
        with Replica.made[0].launch(1):
            assert seen == []
    [program] = seen
    assert program.gcs == host.home.serving / "77-5" / "0" / "gcs"
