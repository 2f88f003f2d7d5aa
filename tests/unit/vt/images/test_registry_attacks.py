"""Registries and images that mean harm: credentials stay, answers are bounded, labels are text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import pytest

from tests.unit.vt.images import stand_in
from tests.unit.vt.images.network import Network
from vertex_training.errors import RegistryError
from vertex_training_cli.images import documents, labels
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


def test_a_redirect_is_followed_without_the_token(
    network: Network, registry: RegistryClient
) -> None:
    body = b'{"layers": []}'
    wanted = digest(body)
    network.answers = {
        f"{BASE}/v2/{PATH}/manifests/{wanted}": (302, {"Location": f"{ELSEWHERE}/x"}, b""),
        f"{ELSEWHERE}/x": (200, {"Content-Type": stand_in.IMAGE}, body),
    }
    assert registry.manifest(PATH, wanted)
    assert [bool(credentials) for _, _, credentials in network.asked] == [True, False]


def test_content_from_elsewhere_is_what_the_digest_says_or_refused(
    network: Network, registry: RegistryClient
) -> None:
    wanted = digest(b"another one")
    network.answers = {
        f"{BASE}/v2/{PATH}/manifests/{wanted}": (307, {"Location": f"{ELSEWHERE}/x"}, b""),
        f"{ELSEWHERE}/x": (200, {}, b"{}"),
    }
    with pytest.raises(RegistryError, match="sent other content"):
        registry.manifest(PATH, wanted)


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


def test_a_refusal_is_asked_once_and_its_text_is_bounded(
    network: Network, registry: RegistryClient
) -> None:
    detail = json.dumps({"errors": [{"message": "no " * 10_000}]}).encode()
    network.answers[f"{BASE}/v2/{PATH}/manifests/latest"] = (403, {}, detail)
    with pytest.raises(RegistryError) as refused:
        registry.manifest(PATH, "latest")
    assert len(network.asked) == 1
    assert len(str(refused.value)) < 500
    assert "roles/artifactregistry.reader" in str(refused.value)


NESTED = b'{"config":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
BLOB = {"digest": "sha256:" + "1" * 64}


@pytest.mark.parametrize(
    "body",
    [
        NESTED,
        b'{"config": {"digest": "sha256:../../other/blobs/sha256:1"}}',
        json.dumps({"config": BLOB, "layers": [{**BLOB, "size": -1}]}).encode(),
        b'{"config": {"digest": "sha256:%s"}, "layers": [{"size": 1e999}]}' % (b"1" * 64),
        json.dumps({"config": BLOB, "layers": [{**BLOB, "size": 10**400}]}).encode(),
        json.dumps({"config": BLOB, "layers": {}}).encode(),
        b"\xff\xfe",
    ],
    ids=["nested", "traversal", "negative", "infinite", "huge", "no list", "no text"],
)
def test_a_document_that_is_no_image_is_an_error_in_plain_words(body: bytes) -> None:
    manifest = documents.ImageManifest(digest(body), stand_in.IMAGE, body)
    with pytest.raises(RegistryError, match="no image of a container"):
        documents.facts(manifest, (), manifest, b"{}")


@pytest.mark.parametrize(
    "children",
    [
        [],
        [
            {
                "digest": "sha256:" + "1" * 64,
                "platform": {"os": "unknown", "architecture": "unknown"},
            }
        ],
    ],
    ids=["empty", "attestations alone"],
)
def test_an_index_without_an_image_is_an_error_in_plain_words(
    children: list[object], network: Network, registry: RegistryClient
) -> None:
    body = json.dumps({"manifests": children}).encode()
    url = f"{BASE}/v2/{PATH}/manifests/{digest(body)}"
    network.answers[url] = (200, {"Content-Type": stand_in.INDEX}, body)
    with pytest.raises(RegistryError, match="lists no image"):
        registry.facts(PATH, digest(body))


def test_a_child_of_an_index_cannot_lead_to_another_address(
    network: Network, registry: RegistryClient
) -> None:
    body = json.dumps({"manifests": [{"digest": "../../../secret", "platform": {}}]}).encode()
    url = f"{BASE}/v2/{PATH}/manifests/{digest(body)}"
    network.answers[url] = (200, {"Content-Type": stand_in.INDEX}, body)
    with pytest.raises(RegistryError, match="no image of a container"):
        registry.facts(PATH, digest(body))
    assert len(network.asked) == 1


def test_a_configuration_that_is_not_what_its_digest_says_is_refused(
    network: Network, registry: RegistryClient
) -> None:
    config = digest(b"the true one")
    body = json.dumps({"config": {"digest": config, "size": 2}, "layers": []}).encode()
    forged = json.dumps({"config": {"Labels": {labels.REVISION: "a" * 40}}}).encode()
    network.answers = {
        f"{BASE}/v2/{PATH}/manifests/{digest(body)}": (200, {"Content-Type": stand_in.IMAGE}, body),
        f"{BASE}/v2/{PATH}/blobs/{config}": (200, {}, forged),
    }
    with pytest.raises(RegistryError, match="sent other content"):
        registry.facts(PATH, digest(body))


@pytest.mark.parametrize(
    "written",
    [
        "<script>alert(1)</script>",
        "\x1b[31mred\x1b[0m",
        "jobs/a\u202eb",
        "../../etc",
        "a" * 5000,
        "[click](https://example.com)",
    ],
)
def test_a_label_that_is_no_folder_and_no_commit_is_not_shown(written: str) -> None:
    found = labels.origin({labels.CONTEXT: written, labels.REVISION: written})
    assert str(found) == ""


def test_a_platform_is_shown_by_its_form_alone() -> None:
    assert documents.platform({"os": "li\x1bnux", "architecture": ["amd64"]}) == "?/?"
    assert documents.platform({"os": "linux", "architecture": "arm64"}) == "linux/arm64"
