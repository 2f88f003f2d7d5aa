"""Models of an image of the stack are served by real containers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from localgcp import lifecycle
from localgcp.containers.front import REPOSITORY
from localgcp.containers.registry import BASE
from localgcp.home import Home
from localgcp.inventory.store import BUCKET, SERVICE, Store
from localgcp.runner.gcsfuse import storage_client
from tests.containers.test_jobs import PROJECT, build, containers
from tests.unit.localcloud.serving import conftest as serving

pytestmark = pytest.mark.timeout(300)

DOCKERFILE = f"""\
FROM {BASE.rpartition("/")[2]}
RUN useradd --uid 10001 --no-create-home app
COPY probe.py /app/probe.py
USER app
ENTRYPOINT ["python", "/app/probe.py"]
"""


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory, registry_program: str, buildah: str, base_image: str
) -> Iterator[tuple[serving.World, str]]:
    """A local cloud, and an image in its registry."""
    home = Home(tmp_path_factory.mktemp("serving") / "home", Path(__file__).resolve().parents[2])
    home.create()
    store = Store(home.database)
    store.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
    store.put(REPOSITORY, "training", PROJECT, {"repositoryId": "training"}, {})
    known = {"name": serving.BUCKET_NAME, "project": PROJECT}
    store.put(BUCKET, serving.BUCKET_NAME, PROJECT, {}, known)
    info = lifecycle.start(home, lambda _: None)
    try:
        program = serving.PROGRAM.read_text()
        image = build(home, tmp_path_factory.mktemp("context"), buildah, DOCKERFILE, program)
        url = f"http://127.0.0.1:{info.storage_port}"
        storage_client(url).create_bucket(serving.BUCKET_NAME)
        channel = grpc.insecure_channel(f"127.0.0.1:{info.vertex_port}")
        yield serving.World(home, store, url, None, channel, info.vertex_port), image  # pyright: ignore[reportArgumentType]
    finally:
        lifecycle.stop(home)
        assert lifecycle.remove(home)


def test_an_image_of_the_stack_serves_in_containers_until_it_is_undeployed(
    world: tuple[serving.World, str],
) -> None:
    cloud, image = world
    endpoint = cloud.endpoint()
    first = cloud.upload(slope=2, container_spec={"image_uri": image})
    second = cloud.upload(slope=3, container_spec={"image_uri": image, "args": ["tell"]})
    cloud.deploy(endpoint, first, "1", {"0": 100}, resources={"min_replica_count": 2,
                                                             "max_replica_count": 2})  # fmt: skip
    cloud.deploy(endpoint, second, "2")
    assert list(cloud.predict(endpoint, 4).predictions) == [8.0]
    assert len(containers(cloud.home)) == 3
    cloud.set_split(endpoint, {"2": 100})
    cloud.undeploy(endpoint, "1")
    assert len(containers(cloud.home)) == 1
    (found,) = cloud.predict(endpoint, 4).predictions
    assert found["AIP_DEPLOYED_MODEL_ID"] == "2"
    cloud.undeploy(endpoint, "2")
    assert not containers(cloud.home)
