"""What is deployed: one operation at a time, nothing without health, nothing lost on the way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from google.api_core import exceptions
from google.protobuf import duration_pb2
from grpc import StatusCode

from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.store import BUCKET, service_agent
from localgcp.runner.gcsfuse import storage_client
from tests.unit.localcloud.conftest import wait_until
from tests.unit.localcloud.serving.conftest import NUMBERED, PLACE, PROJECT, World, container
from vertex_training.serving.google import GoogleRegistry

ENDPOINT_NAME = f"{NUMBERED}/endpoints/77"


def deployed(world: World) -> list[str]:
    return [each.id for each in world.endpoints.get_endpoint(name=ENDPOINT_NAME).deployed_models]


def processes(home: Home) -> list[psutil.Process]:
    """Containers of models that run."""
    found: list[psutil.Process] = []
    for each in psutil.process_iter():
        try:
            if each.environ().get("HOME", "").startswith(f"{home.serving}/"):
                found.append(each)
        except psutil.Error:
            continue
    return found


def log(home: Home, id_: str, index: int = 0) -> str:
    return (home.serving / "logs" / "77" / f"{id_}-{index}.log").read_text()


class Stream:
    """Requests one after the other, in threads, until it is left; notes who answered."""

    def __init__(self, world: World, threads: int = 4, pause: float = 0.02) -> None:
        self.answers: list[str] = []
        self.errors: list[Exception] = []
        self._over = threading.Event()
        self._world, self._pause = world, pause
        self._threads = [threading.Thread(target=self._send) for _ in range(threads)]

    def _send(self) -> None:
        while not self._over.wait(self._pause):
            try:
                answer = self._world.predict(ENDPOINT_NAME, 1)
                self.answers.append(answer.deployed_model_id)
            except Exception as error:
                self.errors.append(error)

    def __enter__(self) -> Stream:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for each in self._threads:
            each.join()


@pytest.fixture
def pair(world: World) -> World:
    """An endpoint with two versions: 1 has all traffic."""
    world.endpoint()
    world.deploy(ENDPOINT_NAME, world.upload(slope=2), "1", {"0": 100})
    world.deploy(ENDPOINT_NAME, world.upload(slope=3), "2")
    return world


def test_a_version_that_is_never_healthy_is_never_there(pair: World) -> None:
    short = pair.upload("unhealthy", slope=6, container_spec=_short("unhealthy"))
    with Stream(pair) as stream, pytest.raises(exceptions.FailedPrecondition, match="never became"):
        pair.deploy(ENDPOINT_NAME, short, "3", {"0": 90, "1": 10})
    assert not stream.errors
    assert set(stream.answers) == {"1"}
    assert (deployed(pair), pair.split(ENDPOINT_NAME)) == (["1", "2"], {"1": 100})
    assert len(processes(pair.home)) == 2


def _short(*words: str) -> dict[str, Any]:
    return container(*words, deployment_timeout=duration_pb2.Duration(seconds=1))


def test_a_replica_that_turns_unhealthy_gets_no_requests_until_it_is_well(
    world: World, tmp_path: Path
) -> None:
    well = tmp_path / "well"
    well.touch()
    endpoint, model = world.endpoint(), world.upload("while", str(well))
    world.deploy(endpoint, model, "1", {"0": 100})
    well.unlink()
    assert world.predict(endpoint, 1).predictions  # one failure is none
    wait_until(lambda: "unhealthy" in log(world.home, "1"))
    with pytest.raises(exceptions.ServiceUnavailable, match="no healthy replica"):
        world.predict(endpoint, 1)
    assert len(processes(world.home)) == 1  # it was not restarted
    well.touch()
    wait_until(lambda: log(world.home, "1").count("] healthy") == 2)
    assert world.predict(endpoint, 1).predictions


MODEL = f"{PLACE}/models/doubler"


def aliases(world: World) -> dict[str, set[str]]:
    """The aliases of each version."""
    found = world.models.list_model_versions(name=MODEL)
    return {each.version_id: set(each.version_aliases) for each in found}


def test_a_bucket_of_another_region_and_one_that_the_service_agent_may_not_read_are_refused(
    world: World,
) -> None:
    for name, project, location in (
        ("elsewhere", PROJECT, "EUROPE-WEST4"),
        ("local-others", "local-other", "US-CENTRAL1"),
    ):
        known = {"name": name, "project": project, "location": location}
        world.store.put(BUCKET, name, project, {}, known)
        storage_client(world.storage_url).create_bucket(name)
        world.write("m/model.json", '{"slope": 1}', name)
    with pytest.raises(exceptions.InvalidArgument, match="must be in the region"):
        world.begin_upload(artifact_uri="gs://elsewhere/m")
    with pytest.raises(exceptions.PermissionDenied, match=service_agent(PROJECT)):
        world.begin_upload(artifact_uri="gs://local-others/m")
    world.grant("b/local-others", "roles/storage.objectViewer", service_agent(PROJECT))
    world.upload(artifact_uri="gs://local-others/m")


def test_an_image_of_another_project_needs_a_reader(world: World) -> None:
    image = "us-central1-docker.pkg.dev/local-other/training/serve:1"
    with pytest.raises(exceptions.PermissionDenied, match="permission to pull"):
        world.begin_upload(container_spec={"image_uri": image})
    place = "projects/local-other/locations/us-central1/repositories/training"
    world.grant(place, "roles/artifactregistry.reader", service_agent(PROJECT))
    world.upload(container_spec={"image_uri": image})


def test_the_program_deletes_the_default_version_once_the_newest_other_one_is_it(
    world: World,
) -> None:
    first, _, newest = world.upload(), world.upload(), world.upload()
    assert GoogleRegistry(world.models).delete_version(first) == ""
    assert aliases(world).keys() == {"2", "3"}
    assert "default" in world.models.get_model(name=newest).version_aliases


def add(world: World, service: str, kind: str, method: str, **more: Any) -> int:
    fault = Fault.parse(service=service, kind=kind, method=method, **more)
    return FaultTable(world.home.faults).add(fault)


def test_held_deployment_is_the_only_operation_and_goes_on_with_the_next_server(
    make_world: Callable[..., World],
) -> None:
    world = make_world()
    endpoint, model = world.endpoint(), world.upload()
    world.deploy(endpoint, model, "2")
    held = add(world, "operations", "hold", "DeployModel", times=0)
    name = world.begin_deploy(endpoint, model, "1", {"0": 100}).operation.name
    faults = FaultTable(world.home.faults)
    assert faults.wait_held(held, 10) == "DeployModel before"
    for call in (
        lambda: world.undeploy(endpoint, "2"),
        lambda: world.endpoints.delete_endpoint(name=endpoint),
    ):
        with pytest.raises(exceptions.FailedPrecondition, match=rf"other operations.*{name}\."):
            call()
    world = make_world()
    faults.wait_held(held, 10)
    assert deployed(world) == ["2"]
    wait_until(lambda: len(processes(world.home)) == 1)  # of the version deployed before
    faults.release(held)
    wait_until(lambda: world.endpoints.get_operation({"name": name}).done)
    assert (world.split(endpoint), sorted(deployed(world))) == ({"1": 100}, ["1", "2"])


def test_of_two_held_uploads_of_a_new_model_the_first_makes_it_once(
    make_world: Callable[..., World],
) -> None:
    world = make_world()
    held = add(world, "operations", "hold", "UploadModel", times=0)
    first = world.begin_upload().operation.name
    faults = FaultTable(world.home.faults)
    faults.wait_held(held, 10)
    second = world.begin_upload().operation.name
    world = make_world()
    faults.wait_held(held, 10)
    faults.release(held)
    operations = [{"name": name} for name in (first, second)]
    wait_until(lambda: all(world.models.get_operation(each).done for each in operations))
    codes = sorted(world.models.get_operation(each).error.code for each in operations)
    assert codes == [0, StatusCode.ALREADY_EXISTS.value[0]]
    assert aliases(world).keys() == {"1"}
