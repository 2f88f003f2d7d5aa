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
    ("target", "name", "kind", "reference"),
    [
        (f"/v2/{IMAGE}/manifests/v1", IMAGE, "manifests", "v1"),
        (f"/v2/{IMAGE}/manifests/{'a' * 128}", IMAGE, "manifests", "a" * 128),
        (f"/v2/{IMAGE}/manifests/{DIGEST}", IMAGE, "manifests", DIGEST),
        (f"/v2/{IMAGE}/blobs/{DIGEST}", IMAGE, "blobs", ""),
        (f"/v2/{IMAGE}/blobs/uploads/", IMAGE, "blobs", ""),
        (f"/v2/{IMAGE}/blobs/uploads/0c6b-1?_state=x%2Fy", IMAGE, "blobs", ""),
        (f"/v2/{IMAGE}/blobs/uploads/?mount={DIGEST}&from=local-b/r/x", IMAGE, "blobs", ""),
        (f"/v2/{IMAGE}/tags/list?n=1000", IMAGE, "tags", ""),
        (f"/v2/{IMAGE}/referrers/{DIGEST}", IMAGE, "referrers", ""),
        (f"/v2/local-a/r/{'x' * 245}/tags/list", f"local-a/r/{'x' * 245}", "tags", ""),
        ("/v2/local-a/r.b/c_d/e__f/g--h/tags/list", "local-a/r.b/c_d/e__f/g--h", "tags", ""),
        ("/v2/mirror/library/python/manifests/3.11-slim", "mirror/library/python", "manifests",
         "3.11-slim"),
    ],
)  # fmt: skip
def test_requests_of_the_specification_are_understood(
    target: str, name: str, kind: str, reference: str
):
    for verb, writes in (("GET", False), ("HEAD", False), ("POST", True), ("PUT", True),
                         ("PATCH", True), ("DELETE", True)):  # fmt: skip
        request = requests.parse(verb, target)
        assert request == requests.RegistryRequest(verb, name, kind, reference)
        assert request.writes is writes
        assert request.sets_manifest is (verb == "PUT" and kind == "manifests")
        assert request.tag == ("" if reference == DIGEST else reference)


@pytest.mark.parametrize("target", ["/v2/", "/v2", "/v2/_catalog?n=5"])
def test_questions_about_the_registry_name_no_image(target: str):
    request = requests.parse("HEAD", target)
    assert request == requests.RegistryRequest("HEAD", "", "", "")
    with pytest.raises(RefusedRequestError) as refused:
        requests.parse("POST", target)
    assert refused.value.status == 404


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
        ("http://[x/v2/", 400),
        ("/v2/Local-a/training/x/manifests/v1", 400),
        (f"/v2/local-a/r/{'x' * 246}/manifests/v1", 400),
        (f"/v2/{IMAGE}/manifests/{'a' * 129}", 400),
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
        ("/v2/mirror/tags/list", "'mirror' is not of the form PROJECT/REPOSITORY/NAME."),
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


def test_an_image_lies_in_the_repository_of_its_project():
    request = requests.parse("GET", f"/v2/{IMAGE}/manifests/v1")
    others = [repository("local-b"), repository(name="other")]
    assert requests.find_repository(others, request) is None
    assert requests.find_repository([*others, repository()], request) == repository()


def test_a_repository_that_was_not_made_takes_nothing():
    request = requests.parse("GET", f"/v2/{IMAGE}/manifests/v1")
    with pytest.raises(RefusedRequestError) as no:
        requests.check_repository(None, request)
    text = "repository training of project local-a does not exist. `pulumi up` makes it."
    assert (no.value.status, str(no.value)) == (404, text)


def test_tags_of_a_repository_are_immutable_only_where_it_says_so():
    request = requests.parse("GET", f"/v2/{IMAGE}/manifests/v1")
    assert requests.check_repository(repository(), request) is False
    bare = StoredResource(requests.REPOSITORY, "local-a/training", "local-a", {}, {})
    assert requests.check_repository(bare, request) is False
    assert requests.REPOSITORY == "gcp:artifactregistry/repository:Repository"


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
    with pytest.raises(RefusedRequestError) as refused:
        requests.check_tag(push("v1"), DIGEST, lambda: OTHER)
    text = "cannot update tag v1. The repository has enabled tag immutability."
    assert (refused.value.status, str(refused.value)) == (400, text)


def test_an_immutable_tag_is_not_deleted():
    request = requests.parse("DELETE", f"/v2/{IMAGE}/manifests/v1")
    with pytest.raises(RefusedRequestError) as refused:
        requests.check_tag(request, "", lambda: OTHER)
    text = "tag v1 is immutable: it is not deleted."
    assert (refused.value.status, str(refused.value)) == (400, text)
    for other in (f"manifests/{DIGEST}", f"blobs/{DIGEST}"):
        request = requests.parse("DELETE", f"/v2/{IMAGE}/{other}")
        requests.check_tag(request, "", lambda: OTHER)


def test_an_image_without_tag_is_always_taken():
    requests.check_tag(push(DIGEST), DIGEST, lambda: OTHER)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "MANIFEST_INVALID"),
        (403, "DENIED"),
        (404, "NAME_UNKNOWN"),
        (405, "UNSUPPORTED"),
        (413, "MANIFEST_INVALID"),
        (507, "UNKNOWN"),
    ],
)
def test_a_refusal_is_worded_as_the_api_words_it(status: int, code: str):
    body = json.loads(requests.error_body(RefusedRequestError(status, "no such thing.")))
    error = {"code": code, "message": "local cloud: no such thing.", "detail": {}}
    assert body == {"errors": [error]}
