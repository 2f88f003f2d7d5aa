"""The registry of the local cloud: it keeps what it is pushed, and refuses what the cloud would."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from localgcp import lifecycle
from localgcp.containers import host
from localgcp.containers.front import REPOSITORY
from localgcp.containers.registry import PROGRAMS
from localgcp.home import Home
from localgcp.inventory.store import Store
from localgcp.system import processes
from tests.unit.localcloud.conftest import wait_until

pytestmark = pytest.mark.timeout(120)

IMAGE = "local-a/training/titanic"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass
class Client:
    """A registry client of twenty lines: the engines' own are used by the other files."""

    port: int

    def send(self, verb: str, path: str, body: bytes | None = None, **headers: str):
        """(status, headers, body)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(verb, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def blob(self, image: str, content: bytes) -> dict[str, object]:
        """Push a blob; its descriptor."""
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        status, headers, _ = self.send("POST", f"/v2/{image}/blobs/uploads/")
        assert status == 202
        where = urlsplit(headers["Location"])
        target = f"{where.path}?{where.query}&digest={digest}"
        assert self.send("PUT", target, content)[0] == 201
        return {"mediaType": "application/octet-stream", "digest": digest, "size": len(content)}

    def push(self, reference: str, text: str = "layer", image: str = IMAGE):
        """Push an image of one layer; (status, body, digest)"""
        config = self.blob(image, b"{}") | {"mediaType": "application/vnd.oci.image.config.v1+json"}
        layer = self.blob(image, text.encode())
        manifest = {
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer],
        }  # fmt: skip
        body = json.dumps(manifest).encode()
        path = f"/v2/{image}/manifests/{reference}"
        status, _, answer = self.send("PUT", path, body, **{"Content-Type": MANIFEST})
        return status, answer, f"sha256:{hashlib.sha256(body).hexdigest()}"

    def digest(self, reference: str, image: str = IMAGE) -> str | None:
        """Digest behind a tag."""
        path = f"/v2/{image}/manifests/{reference}"
        return self.send("HEAD", path, Accept=MANIFEST)[1].get("Docker-Content-Digest")


def add_repository(home: Home, *, immutable: bool = False) -> None:
    inputs = {"repositoryId": "training", "dockerConfig": {"immutableTags": immutable}}
    Store(home.database).put(REPOSITORY, "training", "local-a", inputs, {})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """One for the whole file; its path is too long for a socket."""
    made = Home(tmp_path_factory.mktemp("registry") / ("long-" * 30) / "home", Path("/"))
    made.create()
    return made


@pytest.fixture(scope="module")
def server(home: Home, registry_program: str) -> Iterator[Client]:
    del registry_program
    try:
        yield Client(lifecycle.start(home, lambda _: None).registry_port)
    finally:
        lifecycle.stop(home)


@pytest.fixture
def client(server: Client, home: Home) -> Client:
    """The server's, before a repository with movable tags."""
    add_repository(home)
    return server


def test_pushed_image_stays_by_tag_and_digest_after_a_restart(client: Client, home: Home):
    status, _, digest = client.push("v1")
    assert status == 201
    assert client.digest("v1") == client.digest(digest) == digest
    lifecycle.stop(home)
    client.port = lifecycle.start(home, lambda _: None).registry_port
    assert client.digest("v1") == digest


def test_layer_of_40_mb_comes_back_unchanged(client: Client):
    content = os.urandom(40 << 20)
    blob = client.blob(IMAGE, content)
    assert client.send("GET", f"/v2/{IMAGE}/blobs/{blob['digest']}")[2] == content


def test_tag_moves_unless_tags_are_immutable(client: Client, home: Home):
    assert client.push("v1", "one")[0] == 201
    assert client.push("v1", "two")[0] == 201
    add_repository(home, immutable=True)
    status, body, _ = client.push("v1", "three")
    assert status == 400
    assert b"immutability" in body
    assert client.push("v1", "two")[0] == 201
    assert client.push("v2", "three")[0] == 201
    assert client.send("DELETE", f"/v2/{IMAGE}/manifests/v2")[0] == 400


def test_one_of_many_pushes_of_an_immutable_tag_wins(client: Client, home: Home):
    add_repository(home, immutable=True)
    image = "local-a/training/raced"
    taken: list[str] = []

    def push(number: int) -> None:
        status, _, digest = client.push("v1", f"layer {number}", image)
        if status == 201:
            taken.append(digest)

    threads = [threading.Thread(target=push, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken == [client.digest("v1", image)]


def test_next_server_after_a_kill_has_the_images(client: Client, home: Home):
    digest = client.push("v1")[2]
    info = lifecycle.running(home)
    assert info is not None
    os.kill(info.pid, signal.SIGKILL)
    before = [child for child in processes.live_children(home.children) if child.role == "registry"]
    client.port = lifecycle.start(home, lambda _: None).registry_port
    assert client.digest("v1") == digest
    assert not any(child.is_alive() for child in before)


def test_nothing_is_left_after_the_clean_up(client: Client, home: Home):
    client.push("v1")
    lifecycle.stop(home)
    assert lifecycle.remove(home)
    assert not home.root.exists()


def test_running_local_cloud_starts_a_registry_installed_later(
    tmp_path: Path, registry_program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for found in Path(folder).glob("*"):
            if found.name not in PROGRAMS and not (programs / found.name).exists():
                (programs / found.name).symlink_to(found)
    home = Home(tmp_path / "home", Path(__file__).resolve().parents[2])
    home.create()
    monkeypatch.setenv("PATH", str(programs))
    try:
        before = lifecycle.start(home, lambda _text: None)
        assert before.registry_port == 0
        add_repository(home)
        (programs / PROGRAMS[0]).symlink_to(registry_program)
        wait_until(lambda: lifecycle.start(home, lambda _text: None).registry_port)
        after = lifecycle.start(home, lambda _text: None)
        # The jobs of a server are its children: the same process has lost none.
        assert (after.pid, after.vertex_port) == (before.pid, before.vertex_port)
        assert after.storage_port == before.storage_port
        assert home.builders.exists() or not host.readable_files()
        assert Client(after.registry_port).push("v1")[0] == 201
    finally:
        lifecycle.stop(home)
