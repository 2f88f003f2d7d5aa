"""Which requests of the registry pass."""

from __future__ import annotations

import pytest

from localgcp.containers import requests
from localgcp.errors import RefusedRequestError
from localgcp.inventory.store import StoredResource

DIGEST = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64
IMAGE = "local-a/training/titanic"


def repository(project: str = "local-a", name: str = "training", *, immutable: bool = False):
    inputs = {"repositoryId": name, "dockerConfig": {"immutableTags": immutable}}
    return StoredResource(requests.REPOSITORY, f"{project}/{name}", project, inputs, {})


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/", 404),
        ("/v2/local-a/training/manifests/v1", 404),
        ("/v2/acme-ml-dev/training/titanic/manifests/v1", 403),
        ("/v2/local-a/../../etc/manifests/v1", 400),
        ("http://[x/v2/", 400),
        (f"/v2/{IMAGE}/manifests/{'a' * 129}", 400),
    ],
)
def test_others_are_refused(target: str, status: int):
    with pytest.raises(RefusedRequestError) as refused:
        requests.parse("POST", target)
    assert refused.value.status == status


@pytest.mark.parametrize("verb", ["OPTIONS", "TRACE", "CONNECT"])
def test_other_methods_are_refused(verb: str):
    with pytest.raises(RefusedRequestError) as refused:
        requests.parse(verb, f"/v2/{IMAGE}/manifests/v1")
    assert (refused.value.status, str(refused.value)) == (
        405, f"{verb} is no method of the registry.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("/v2/Local/r/x/tags/list", "'Local/r/x' is no name of an image."),
        (f"/v2/{'X' * 81}/tags/list", f"'{'X' * 80}' is no name of an image."),
        ("/v2/local-a/x/tags/list",
         "'local-a/x' is not of the form PROJECT/REPOSITORY/NAME."),
        ("/v2/acme/r/x/tags/list",
         "the local cloud has no project acme: its projects begin with local-."),
        (f"/v2/{IMAGE}/manifests/a%2fb", "'a%2fb' is neither a tag nor a digest."),
        ("/v1/x?y", "the registry has no '/v1/x'."),
    ],
)  # fmt: skip
def test_a_refusal_says_what_is_wrong(target: str, text: str):
    with pytest.raises(RefusedRequestError) as refused:
        requests.parse("GET", target)
    assert str(refused.value) == text


def test_base_images_need_no_repository():
    request = requests.parse("GET", "/v2/mirror/library/python/manifests/3.11-slim")
    assert requests.check_repository(None, request) is False


def push(reference: str):
    return requests.parse("PUT", f"/v2/{IMAGE}/manifests/{reference}")


def test_an_immutable_tag_takes_no_second_image():
    with pytest.raises(RefusedRequestError) as refused:
        requests.check_tag(push("v1"), DIGEST, lambda: OTHER)
    text = "cannot update tag v1. The repository has enabled tag immutability."
    assert (refused.value.status, str(refused.value)) == (400, text)
