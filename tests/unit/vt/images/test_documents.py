"""Manifests, configurations and labels that anybody may have written: read, bounded or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vertex_training.errors import RegistryError
from vertex_training_cli.images import documents, labels
from vertex_training_cli.images.documents import INDEXES, MANIFESTS, ImageFacts, ImageManifest

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


def test_an_image_consists_of_its_configuration_and_its_layers() -> None:
    assert IMAGE.config() == B
    assert IMAGE.blobs() == {B: 3, C: 5, A: 7}
    assert IMAGE.size() == 12
    assert manifest({"config": {"digest": B, "size": 0}}).blobs() == {B: 0}
    assert manifest({}).size() == 0


@pytest.mark.parametrize(
    "content",
    [
        [],
        "text",
        {"config": None},
        {"config": {"size": 1}},
        {"config": {"digest": "sha256:x", "size": 1}},
        {"config": {"digest": f"{B}/..", "size": 1}},
        {"config": {"digest": B}},
        {"config": {"digest": B, "size": -1}},
        {"config": {"digest": B, "size": True}},
        {"config": {"digest": B, "size": "1"}},
        {"config": {"digest": B, "size": 2**50 + 1}},
        {"config": {"digest": B, "size": 1}, "layers": {}},
        {"config": {"digest": B, "size": 1}, "layers": ["x"]},
        {"config": {"digest": B, "size": 1}, "layers": [{"digest": C, "size": 1}] * 1001},
    ],
)
def test_what_is_no_image_is_refused_by_its_digest(content: object) -> None:
    with pytest.raises(RegistryError, match=f"{A} is no image of a container"):
        manifest(content).blobs()


def test_what_is_just_within_the_bounds_is_read() -> None:
    part = {"digest": B, "size": 2**50}
    many = [{"digest": C, "size": 1}] * 1000
    assert manifest({"config": part, "layers": many}).blobs() == {B: 2**50, C: 1}
    assert manifest({"layers": many}).size() == 1000


@pytest.mark.parametrize("body", [b"{", b"[" * 100_000, b"\xff", b"[]"])
def test_what_is_no_document_is_no_image(body: bytes) -> None:
    with pytest.raises(RegistryError, match="is no image"):
        documents.parse(body, A)
    assert documents.parse(b'{"a": 1}', A) == {"a": 1}


@pytest.mark.parametrize(
    ("found", "platform"),
    [
        ({"os": "linux", "architecture": "arm64", "variant": "v8"}, "linux/arm64"),
        ({"os": "linux"}, "linux/?"),
        ({"os": "LINUX", "architecture": "a" * 32}, f"?/{'a' * 32}"),
        ({"os": 3, "architecture": "a" * 33}, "?/?"),
        ({"os": "a b", "architecture": "a\n"}, "?/?"),
        (None, "?/?"),
        ("linux/amd64", "?/?"),
    ],
)
def test_a_platform_has_two_parts_of_plain_letters(found: object, platform: str) -> None:
    assert documents.platform(found) == platform


def test_of_several_images_that_for_the_service_is_read() -> None:
    assert documents.choose({"linux/arm64": A, "linux/amd64": B}, C) == B
    assert documents.choose({"linux/arm64": A, "windows/amd64": B}, C) == A
    with pytest.raises(RegistryError, match=f"{C} is an index that lists no image"):
        documents.choose({}, C)


def test_facts_are_those_of_the_configuration_within_bounds() -> None:
    content = {
        "os": "linux", "architecture": "amd64", "created": "2026-11-26T00:00:00Z",
        "config": {"Labels": {"a": 1, "b" * 5000: "c" * 5000}},
    }  # fmt: skip
    found = documents.facts(IMAGE, (), IMAGE, json.dumps(content).encode())
    assert found == ImageFacts(
        A, ("linux/amd64",), {"a": "1", "b" * 4096: "c" * 4096}, "2026-11-26T00:00:00Z", 12
    )
    many = {"config": {"Labels": {str(n): "x" for n in range(1001)}}}
    assert len(documents.facts(IMAGE, (), IMAGE, json.dumps(many).encode()).labels) == 1000
    of_index = documents.facts(INDEX, ("linux/arm64", "x/y"), IMAGE, b"{}")
    assert of_index == ImageFacts(A, ("linux/arm64", "x/y"), {}, "", 12)


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


@pytest.mark.parametrize(
    ("errors", "lacks"),
    [
        ([{"code": "NAME_UNKNOWN", "message": 'Repository "x" not found'}], True),
        ([{"code": "NAME_UNKNOWN", "message": "The repository does not exist"}], True),
        ([{"code": "OTHER"}, {"code": "NAME_UNKNOWN", "message": "repository not found"}], True),
        # of an image that is not there
        ([{"code": "NAME_UNKNOWN", "message": "repository name not known to registry"}], False),
        ([{"code": "MANIFEST_UNKNOWN", "message": "repository not found"}], False),
        ([], False),
        ("text", False),
        (None, False),
    ],
)
def test_a_repository_that_is_not_there_is_said_by_the_registry(
    errors: object, lacks: bool
) -> None:
    assert documents.lacks_repository(json.dumps({"errors": errors}).encode()) is lacks
    assert documents.lacks_repository(b"<html>") is False


@pytest.mark.parametrize(
    ("context", "revision", "shown"),
    [
        ("jobs/train", "0123456789abcdef", "jobs/train at commit 0123456789ab"),
        ("jobs/train", "0123456-dirty", "jobs/train at commit 0123456-dirty"),
        ("jobs/train", "", "jobs/train"),
        ("", "0123456", "commit 0123456"),
        ("jobs/train", "main", "jobs/train"),
        ("jobs/train", "0123456-other", "jobs/train"),
        ("jobs/train", "012345", "jobs/train"),
        ("../x", "0123456", "commit 0123456"),
        ("/etc", "", ""),
        ("a" * 100, "", "a" * 100),
        ("a" * 101, "", ""),
        ("a\nb", "<b>", ""),
    ],
)
def test_an_origin_is_shown_where_it_is_a_folder_and_a_commit(
    context: str, revision: str, shown: str
) -> None:
    given = {labels.CONTEXT: context, labels.REVISION: revision, "other": "x"}
    assert str(labels.origin(given)) == shown
    assert str(labels.origin({})) == ""
