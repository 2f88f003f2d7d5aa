"""Manifests, configurations and labels that anybody may have written: read, bounded or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vertex_training.errors import RegistryError
from vertex_training_cli.images import documents
from vertex_training_cli.images.documents import INDEXES, MANIFESTS, ImageManifest

A, B, C = (f"sha256:{letter * 64}" for letter in "abc")


def manifest(content: object, kind: str = MANIFESTS[0]) -> ImageManifest:
    return ImageManifest(A, kind, json.dumps(content).encode())


def child(digest: str, architecture: str = "amd64", system: str = "linux") -> dict[str, Any]:
    return {"digest": digest, "platform": {"os": system, "architecture": architecture}}


INDEX = manifest(
    {"manifests": [child(A), child(B, "arm64"), child(C, "unknown", "unknown"), child(C)]},
    INDEXES[0],
)
IMAGE = manifest(
    {
        "config": {"digest": B, "size": 3},
        "layers": [{"digest": C, "size": 5}, {"digest": A, "size": 7}],
    }
)


def test_an_index_lists_images_by_platform_and_attestations_beside_them() -> None:
    # Of two images for one platform the first one counts.
    assert INDEX.children() == {"linux/amd64": A, "linux/arm64": B}
    assert INDEX.listed() == [A, B, C, C]
    assert [each.is_index for each in (INDEX, IMAGE)] == [True, False]
    assert manifest({}, INDEXES[1]).is_index
    assert not manifest({}, MANIFESTS[1]).is_index


BLOB = {"digest": B, "size": 1}


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b'"text"',
        b"\xff\xfe",
        b'{"config": {"size": 1}}',
        b'{"config":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"config": {"digest": "sha256:../../other/blobs/sha256:1"}}',
        *(json.dumps({"config": BLOB, "layers": layers}).encode() for layers in (
            {}, ["x"], [{**BLOB, "size": -1}], [{**BLOB, "size": 10**400}])),
        b'{"config": {"digest": "sha256:%s"}, "layers": [{"size": 1e999}]}' % (b"1" * 64),
    ],
)  # fmt: skip
def test_document_that_is_no_image_is_refused_by_its_digest(body: bytes) -> None:
    document = ImageManifest(A, MANIFESTS[0], body)
    with pytest.raises(RegistryError, match=f"{A} is no image of a container"):
        document.blobs()
    with pytest.raises(RegistryError, match="no image of a container"):
        documents.facts(document, (), document, b"{}")


def test_image_without_the_size_of_its_configuration_is_not_copied() -> None:
    with pytest.raises(RegistryError, match=f"{A} is no image of a container"):
        manifest({"config": {"digest": B}}).blobs()


@pytest.mark.parametrize(
    ("found", "platform"),
    [
        ({"os": "linux", "architecture": "arm64", "variant": "v8"}, "linux/arm64"),
        ({"os": "linux"}, "linux/?"),
        ({"os": "LINUX", "architecture": "a" * 32}, f"?/{'a' * 32}"),
        ({"os": 3, "architecture": "a" * 33}, "?/?"),
        ({"os": "a b", "architecture": "a\n"}, "?/?"),
        (None, "?/?"),
    ],
)
def test_a_platform_has_two_parts_of_plain_letters(found: object, platform: str) -> None:
    assert documents.platform(found) == platform


@pytest.mark.parametrize("config", [{"Labels": [1]}, {"Labels": "x"}])
def test_labels_of_another_form_are_no_image(config: object) -> None:
    with pytest.raises(RegistryError, match="is no image"):
        documents.facts(IMAGE, (), IMAGE, json.dumps({"config": config}).encode())
    assert documents.facts(IMAGE, (), IMAGE, b'{"config": "x"}').labels == {}
    assert documents.facts(IMAGE, (), IMAGE, b'{"config": {"Labels": null}}').labels == {}


def test_tags_are_those_with_the_form_of_one() -> None:
    given = ["v1", "_x", "-y", "a b", 3, "a" * 128, "a" * 129, "x\n"]
    assert documents.tags(json.dumps({"tags": given}).encode(), "p") == ["v1", "_x", "a" * 128]
    assert documents.tags(b'{"tags": null}', "p") == documents.tags(b"{}", "p") == []
    with pytest.raises(RegistryError, match="p: the registry sent no list of tags"):
        documents.tags(b'{"tags": {"a": 1}}', "p")
