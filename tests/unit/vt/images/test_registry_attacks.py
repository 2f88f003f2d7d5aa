"""Registries and images that mean harm: credentials stay, answers are bounded, labels are text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import pytest

from tests.unit.vt.images import stand_in
from tests.unit.vt.images.network import Network
from vertex_training.errors import RegistryError
from vertex_training_cli.images.registry import RegistryClient

BASE = "https://us-central1-docker.pkg.dev"
ELSEWHERE = "https://elsewhere.example.com"
PATH = "acme-ml-dev/training-dev/train"
TOKEN = "ya29.a-token-that-stays-here"


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.fixture
def registry(network: Network) -> RegistryClient:
    return network.client(BASE, TOKEN)


@pytest.mark.parametrize("location", ["http://elsewhere.example.com/x", "file:///etc/passwd"])
def test_a_redirect_to_plain_text_or_a_file_is_refused(
    location: str, network: Network, registry: RegistryClient
) -> None:
    wanted = digest(b"x")
    network.answers = {
        f"{BASE}/v2/{PATH}/manifests/{wanted}": (302, {"Location": location}, b""),
    }
    with pytest.raises(RegistryError, match="sends GET to another address"):
        registry.manifest(PATH, wanted)
    assert len(network.asked) == 1


def test_redirects_in_a_circle_end(network: Network, registry: RegistryClient) -> None:
    wanted = digest(b"x")
    url = f"{BASE}/v2/{PATH}/manifests/{wanted}"
    network.answers = {url: (302, {"Location": url}, b"")}
    with pytest.raises(RegistryError, match="another address"):
        registry.manifest(PATH, wanted)
    assert len(network.asked) <= 5


@pytest.mark.parametrize(
    "ask", [lambda at: at.tags(PATH), lambda at: at.manifest(PATH, "latest")], ids=["tags", "tag"]
)
def test_what_no_digest_proves_comes_from_the_registry_alone(
    ask: Callable[[RegistryClient], object], network: Network, registry: RegistryClient
) -> None:
    for url in (f"{BASE}/v2/{PATH}/tags/list?n=1000", f"{BASE}/v2/{PATH}/manifests/latest"):
        network.answers[url] = (302, {"Location": f"{ELSEWHERE}/x"}, b"")
    with pytest.raises(RegistryError, match="sends GET to another address"):
        ask(registry)
    assert not [url for _, url, _ in network.asked if url.startswith(ELSEWHERE)]


def test_the_next_page_of_a_list_elsewhere_gets_no_token(
    network: Network, registry: RegistryClient
) -> None:
    link = {"Link": f'<{ELSEWHERE}/v2/x/tags/list>; rel="next"'}
    network.answers[f"{BASE}/v2/{PATH}/tags/list?n=1000"] = (200, link, b'{"tags": ["a"]}')
    with pytest.raises(RegistryError, match="an address that is not its own"):
        registry.tags(PATH)
    assert len(network.asked) == 1


def test_an_upload_elsewhere_gets_neither_token_nor_image(
    network: Network, registry: RegistryClient
) -> None:
    config, there = b"{}", "acme-ml-prod/training-prod/train"
    body = json.dumps({"config": {"digest": digest(config), "size": 2}, "layers": []}).encode()
    network.answers = {
        f"{BASE}/v2/{PATH}/manifests/{digest(body)}": (200, {"Content-Type": stand_in.IMAGE}, body),
        f"{BASE}/v2/{PATH}/blobs/{digest(config)}": (200, {}, config),
        f"{BASE}/v2/{there}/blobs/uploads/?mount={digest(config)}&from={PATH}": (
            202,
            {"Location": f"{ELSEWHERE}/upload"},
            b"",
        ),
    }
    with pytest.raises(RegistryError, match="an address that is not its own"):
        registry.copy(PATH, digest(body), registry, there, ())
    assert not [url for _, url, _ in network.asked if url.startswith(ELSEWHERE)]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_registry_is_asked_three_times(
    status: int, network: Network, registry: RegistryClient
) -> None:
    network.answers[f"{BASE}/v2/{PATH}/manifests/latest"] = (status, {}, b"{")
    with pytest.raises(RegistryError, match=f"answered {status} to GET"):
        registry.manifest(PATH, "latest")
    assert len(network.asked) == 3


def test_a_child_of_an_index_cannot_lead_to_another_address(
    network: Network, registry: RegistryClient
) -> None:
    body = json.dumps({"manifests": [{"digest": "../../../secret", "platform": {}}]}).encode()
    url = f"{BASE}/v2/{PATH}/manifests/{digest(body)}"
    network.answers[url] = (200, {"Content-Type": stand_in.INDEX}, body)
    with pytest.raises(RegistryError, match="no image of a container"):
        registry.facts(PATH, digest(body))
    assert len(network.asked) == 1
