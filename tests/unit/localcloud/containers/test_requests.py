"""Which requests of the registry pass."""

from __future__ import annotations

import json

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
    ("target", "kind", "reference"),
    [
        (f"/v2/{IMAGE}/manifests/v1", "manifests", "v1"),
        (f"/v2/{IMAGE}/manifests/{DIGEST}", "manifests", DIGEST),
        (f"/v2/{IMAGE}/blobs/{DIGEST}", "blobs", ""),
        (f"/v2/{IMAGE}/blobs/uploads/", "blobs", ""),
        (f"/v2/{IMAGE}/blobs/uploads/0c6b-1?_state=x%2Fy", "blobs", ""),
        (f"/v2/{IMAGE}/blobs/uploads/?mount={DIGEST}&from=local-b/r/x", "blobs", ""),
        (f"/v2/{IMAGE}/tags/list?n=1000", "tags", ""),
        ("/v2/mirror/library/python/manifests/3.11-slim", "manifests", "3.11-slim"),
    ],
)
def test_requests_of_the_specification_are_understood(target: str, kind: str, reference: str):
    request = requests.parse("GET", target)
    assert (request.kind, request.reference) == (kind, reference)


@pytest.mark.parametrize("target", ["/v2/", "/v2", "/v2/_catalog?n=5"])
def test_questions_about_the_registry_name_no_image(target: str):
    assert requests.parse("GET", target).name == ""


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/", 404),
        ("/v1/x", 404),
        ("/debug/vars", 404),
        ("/v2/local-a/training/manifests/v1", 404),
        ("/v2/titanic/manifests/v1", 404),
        ("/v2/mirror/manifests/v1", 404),
        ("/v2/acme-ml-dev/training/titanic/manifests/v1", 403),
        ("/v2/local-a/../../etc/manifests/v1", 400),
        ("/v2/local-a/%2e%2e/etc/manifests/v1", 400),
        ("/v2/local-a//x/manifests/v1", 400),
        ("/v2/Local-a/training/x/manifests/v1", 400),
        (f"/v2/local-a/r/{'x' * 300}/manifests/v1", 400),
        (f"/v2/{IMAGE}/manifests/..", 400),
        (f"/v2/{IMAGE}/manifests/sha256:abc", 400),
        (f"/v2/{IMAGE}/manifests/a%2fb", 400),
        (f"/v2/{IMAGE}/manifests/", 404),
        (f"/v2/{IMAGE}/blobs/uploads/?mount={DIGEST}&from=../../etc", 400),
        (f"/v2/{IMAGE}/blobs/uploads/?mount={DIGEST}&from=acme/prod/x", 403),
    ],
)
def test_others_are_refused(target: str, status: int):
    with pytest.raises(RefusedRequestError) as refused:
        requests.parse("POST", target)
    assert refused.value.status == status


@pytest.mark.parametrize("verb", ["OPTIONS", "TRACE", "CONNECT"])
def test_other_methods_are_refused(verb: str):
    with pytest.raises(RefusedRequestError):
        requests.parse(verb, "/v2/")


def test_an_image_lies_in_the_repository_of_its_project():
    request = requests.parse("GET", f"/v2/{IMAGE}/manifests/v1")
    others = [repository("local-b"), repository(name="other")]
    assert requests.find_repository(others, request) is None
    assert requests.find_repository([*others, repository()], request) == repository()


def test_a_repository_that_was_not_made_takes_nothing():
    request = requests.parse("GET", f"/v2/{IMAGE}/manifests/v1")
    with pytest.raises(RefusedRequestError, match="repository training of project local-a") as no:
        requests.check_repository(None, request)
    assert no.value.status == 404


def test_base_images_need_no_repository():
    request = requests.parse("GET", "/v2/mirror/library/python/manifests/3.11-slim")
    assert requests.check_repository(None, request) is False


def push(reference: str):
    return requests.parse("PUT", f"/v2/{IMAGE}/manifests/{reference}")


@pytest.mark.parametrize("current", [None, DIGEST])
def test_an_immutable_tag_takes_its_first_image_and_the_same_again(current: str | None):
    assert requests.check_repository(repository(immutable=True), push("v1"))
    requests.check_tag(push("v1"), DIGEST, lambda: current)


def test_an_immutable_tag_takes_no_second_image():
    with pytest.raises(RefusedRequestError, match="tag immutability"):
        requests.check_tag(push("v1"), DIGEST, lambda: OTHER)


def test_an_immutable_tag_is_not_deleted():
    request = requests.parse("DELETE", f"/v2/{IMAGE}/manifests/v1")
    with pytest.raises(RefusedRequestError, match="immutable"):
        requests.check_tag(request, "", lambda: OTHER)


def test_an_image_without_tag_is_always_taken():
    requests.check_tag(push(DIGEST), DIGEST, lambda: OTHER)


def test_a_refusal_is_worded_as_the_api_words_it():
    body = json.loads(requests.error_body(RefusedRequestError(404, "no such thing.")))
    assert body["errors"][0]["code"] == "NAME_UNKNOWN"
    assert "no such thing" in body["errors"][0]["message"]
