"""What a client asks a registry for, request by request, and what it makes of the answers."""

from __future__ import annotations

import json

import pytest

from tests.unit.vt.images.network import Network
from tests.unit.vt.images.stand_in import IMAGE, INDEX, digest
from vertex_training.errors import RegistryError
from vertex_training_cli.images import registry as registries
from vertex_training_cli.images.documents import ImageFacts
from vertex_training_cli.images.registry import RegistryClient

BASE = "https://us-docker.pkg.dev"
PATH, THERE = "acme/one/train", "acme/two/train"
CONFIG = json.dumps(
    {
        "os": "linux",
        "architecture": "amd64",
        "created": "2026-11-26T00:00:00Z",
        "config": {"Labels": {"a": "b"}},
    }
).encode()
LAYER = b"a layer"
BODY = json.dumps(
    {
        "config": {"digest": digest(CONFIG), "size": len(CONFIG)},
        "layers": [{"digest": digest(LAYER), "size": len(LAYER)}],
    }
).encode()
DIGEST, NONE = digest(BODY), "sha256:" + "5" * 64
ACCEPT = (
    "application/vnd.oci.image.index.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.v2+json"
)


def manifest_url(reference: str, path: str = PATH) -> str:
    return f"{BASE}/v2/{path}/manifests/{reference}"


def blob_url(blob: str, path: str = PATH) -> str:
    return f"{BASE}/v2/{path}/blobs/{blob}"


@pytest.fixture
def network() -> Network:
    made = Network()
    made.answers = {
        manifest_url(DIGEST): (200, {"Content-Type": f"{IMAGE}; charset=utf-8"}, BODY),
        manifest_url("v1"): (
            200,
            {"Content-Type": IMAGE, "Docker-Content-Digest": DIGEST},
            BODY,
        ),
        blob_url(digest(CONFIG)): (200, {}, CONFIG),
        blob_url(digest(LAYER)): (200, {}, LAYER),
    }
    return made


@pytest.fixture
def registry(network: Network) -> RegistryClient:
    return network.client(BASE, "a-token")


def asked(network: Network) -> list[tuple[str, str]]:
    """Methods and addresses, without the registry's own."""
    return [(method, url.removeprefix(f"{BASE}/v2/")) for method, url, _ in network.asked]


def test_a_digest_is_what_the_registry_says_or_that_of_the_content(
    network: Network, registry: RegistryClient
) -> None:
    assert registry.digest_of(PATH, "v1") == DIGEST
    assert registry.digest_of(PATH, "v2") is None
    assert asked(network) == [
        ("HEAD", f"{PATH}/manifests/v1"),
        ("HEAD", f"{PATH}/manifests/v2"),
    ]
    assert {headers["Accept"] for headers, _, _ in network.sent} == {ACCEPT}
    network.asked.clear()
    network.answers[manifest_url("v3")] = (200, {"Docker-Content-Digest": "md5:1"}, BODY)
    assert registry.digest_of(PATH, "v3") == DIGEST
    assert [method for method, _ in asked(network)] == ["HEAD", "GET"]
    network.answers[f"HEAD {manifest_url('v4')}"] = (200, {}, b"")
    assert registry.digest_of(PATH, "v4") is None


FACTS = ImageFacts(DIGEST, ("linux/amd64",), {"a": "b"}, "2026-11-26T00:00:00Z", len(LAYER))


def index(*children: tuple[str, str]) -> bytes:
    return json.dumps(
        {
            "manifests": [
                {"digest": child, "platform": {"os": "linux", "architecture": architecture}}
                for child, architecture in children
            ]
        }
    ).encode()


def test_facts_are_those_of_an_image_or_of_one_that_an_index_lists(
    network: Network, registry: RegistryClient
) -> None:
    assert registry.facts(PATH, DIGEST) == FACTS
    assert registry.facts(PATH, "v2") is None
    both = index((DIGEST, "amd64"), (NONE, "arm64"))
    network.answers[manifest_url("both")] = (200, {"Content-Type": INDEX}, both)
    assert registry.facts(PATH, "both") == ImageFacts(
        digest(both), ("linux/amd64", "linux/arm64"), {"a": "b"}, FACTS.created, FACTS.size
    )
    alone = index((NONE, "amd64"))
    network.answers[manifest_url("alone")] = (200, {"Content-Type": INDEX}, alone)
    with pytest.raises(RegistryError) as refused:
        registry.facts(PATH, "alone")
    assert str(refused.value) == f"{PATH}@{digest(alone)} lists {NONE}, which is not there."
    network.answers[manifest_url("empty")] = (200, {"Content-Type": INDEX}, index())
    with pytest.raises(RegistryError) as refused:
        registry.facts(PATH, "empty")
    text = f"{PATH}@{digest(index())} is an index that lists no image."
    assert str(refused.value) == text


def test_an_image_without_its_configuration_is_refused(
    network: Network, registry: RegistryClient
) -> None:
    network.answers[blob_url(digest(CONFIG))] = (200, {}, b"{}")
    with pytest.raises(RegistryError) as refused:
        registry.facts(PATH, DIGEST)
    text = f"{PATH}@{digest(CONFIG)}: the registry sent other content, {digest(b'{}')}."
    assert str(refused.value) == text
    del network.answers[blob_url(digest(CONFIG))]
    with pytest.raises(RegistryError) as refused:
        registry.facts(PATH, DIGEST)
    assert str(refused.value) == f"{PATH} lacks {digest(CONFIG)}, of which it consists."


def test_tags_are_read_page_by_page(network: Network, registry: RegistryClient) -> None:
    first = f"{BASE}/v2/{PATH}/tags/list?n=1000"
    assert registry.tags(PATH) == ()
    link = {"Link": f'</v2/{PATH}/tags/list?n=1000&last=b>; rel="next"'}
    network.answers[first] = (200, link, b'{"tags": ["a", "b"]}')
    network.answers[f"{first}&last=b"] = (200, {}, b'{"tags": ["c"]}')
    network.asked.clear()
    assert registry.tags(PATH) == ("a", "b", "c")
    assert asked(network) == [
        ("GET", f"{PATH}/tags/list?n=1000"),
        ("GET", f"{PATH}/tags/list?n=1000&last=b"),
    ]
    assert all(options["stream"] for _, _, options in network.sent)


@pytest.mark.parametrize(
    ("each", "bound", "pages"), [(1, 20_000, 100), (3, 6, 3), (3, 5, 2), (3, 3, 2), (3, 2, 1)]
)
def test_a_list_of_tags_is_read_up_to_a_bound(
    network: Network,
    registry: RegistryClient,
    monkeypatch: pytest.MonkeyPatch,
    each: int,
    bound: int,
    pages: int,
) -> None:
    assert registries.MOST_TAGS == 20_000
    monkeypatch.setattr(registries, "MOST_TAGS", bound)
    url = f"{BASE}/v2/{PATH}/tags/list?n=1000"
    body = json.dumps({"tags": ["a"] * each}).encode()
    network.answers[url] = (200, {"Link": f'<{url}>; rel="next"'}, body)
    assert registry.tags(PATH) == ("a",) * each * pages
    assert len(network.asked) == pages


def uploads(path: str = THERE) -> str:
    return f"{BASE}/v2/{path}/blobs/uploads/"


def test_between_two_registries_nothing_is_mounted(
    network: Network, registry: RegistryClient
) -> None:
    other = "https://europe-docker.pkg.dev"
    target = f"{other}/v2/{THERE}"
    network.answers |= {
        f"{target}/blobs/{digest(CONFIG)}": (200, {}, b""),
        f"{target}/blobs/uploads/": (202, {"Location": f"{other}/up?state=1"}, b""),
        f"{other}/up?state=1&digest={digest(LAYER)}": (201, {}, b""),
        f"PUT {target}/manifests/{DIGEST}": (201, {}, b""),
        f"{target}/manifests/v1": (200, {"Docker-Content-Digest": DIGEST}, b""),
    }
    to = network.client(other, "b-token")
    assert registry.copy(PATH, DIGEST, to, THERE, ("v1",)) == len(LAYER)
    puts = [url for method, url, _ in network.asked if method == "PUT"]
    assert puts == [
        f"{other}/up?state=1&digest={digest(LAYER)}",
        f"{target}/manifests/{DIGEST}",
    ]
    del network.answers[blob_url(digest(LAYER))]
    with pytest.raises(RegistryError) as refused:
        registry.copy(PATH, DIGEST, to, THERE, ())
    assert str(refused.value) == f"{PATH} lacks {digest(LAYER)}, of which it consists."


def test_the_images_of_an_index_come_before_it(network: Network, registry: RegistryClient) -> None:
    body = index((DIGEST, "amd64"))
    network.answers |= {
        manifest_url(digest(body)): (200, {"Content-Type": INDEX}, body),
        blob_url(digest(CONFIG), THERE): (200, {}, b""),
        f"{uploads()}?mount={digest(LAYER)}&from={PATH}": (202, {"Location": "/up"}, b""),
        f"{BASE}/up?digest={digest(LAYER)}": (201, {}, b""),
        f"PUT {manifest_url(DIGEST, THERE)}": (201, {}, b""),
        f"PUT {manifest_url(digest(body), THERE)}": (201, {}, b""),
    }
    assert registry.copy(PATH, digest(body), registry, THERE, ()) == len(LAYER)
    puts = [url for method, url in asked(network) if method == "PUT" and "manifests" in url]
    assert puts == [f"{THERE}/manifests/{DIGEST}", f"{THERE}/manifests/{digest(body)}"]
    there = (200, {"Docker-Content-Digest": DIGEST}, b"")
    network.answers[f"HEAD {manifest_url(DIGEST, THERE)}"] = there
    network.asked.clear()
    assert registry.copy(PATH, digest(body), registry, THERE, ()) == 0
    puts = [url for method, url in asked(network) if method == "PUT"]
    assert puts == [f"{THERE}/manifests/{digest(body)}"]


def test_a_part_that_is_kept_elsewhere_is_there(network: Network, registry: RegistryClient) -> None:
    network.answers[blob_url(NONE)] = (307, {"Location": "https://elsewhere.example.com"}, b"")
    assert registry.has_blob(PATH, NONE) is True
    assert registry.has_blob(PATH, digest(LAYER)) is True
    assert registry.has_blob(PATH, digest(b"other")) is False
