"""What deny policies, tags and endpoints answer, without a plugin."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.errors import CloudError
from localgcp.inventory.store import ACCOUNT, ENDPOINT, Binding
from tests.unit.localcloud.gcp.estate import (
    DIGITS,
    NUMBER,
    PROJECT,
    TIME,
    Estate,
    worded,
    write_policy,
)

DENY = "gcp:iam/denyPolicy:DenyPolicy"
KEY, VALUE = "gcp:tags/tagKey:TagKey", "gcp:tags/tagValue:TagValue"
BINDING = "gcp:tags/tagBinding:TagBinding"
POINT = f"cloudresourcemanager.googleapis.com%2Fprojects%2F{PROJECT}"
EMAIL = f"trainer@{PROJECT}.iam.gserviceaccount.com"
ACCOUNTS = f"//iam.googleapis.com/projects/{PROJECT}/serviceAccounts"


@pytest.fixture
def tagged(estate: Estate) -> Estate:
    """With a key, a value of it and an account."""
    put = estate.store.put
    put(KEY, "tagKeys/1", PROJECT, {}, {"namespacedName": f"{PROJECT}/env"})
    put(VALUE, "tagValues/2", PROJECT, {}, {"namespacedName": f"{PROJECT}/env/prod"})
    put(ACCOUNT, "a", PROJECT, {}, {"email": EMAIL, "uniqueId": "123"})
    return estate


TAG = {"name": "x", "createTime": TIME, "updateTime": TIME}


@pytest.mark.parametrize(
    ("token", "inputs", "made"),
    [
        (DENY, {"parent": POINT, "name": "policy"}, {"etag": DIGITS}),
        (KEY, {"parent": f"projects/{PROJECT}", "shortName": "env"},
         TAG | {"name": DIGITS, "namespacedName": f"{PROJECT}/env"}),
        (VALUE, {"parent": "tagKeys/1", "shortName": "dev"},
         TAG | {"name": DIGITS, "namespacedName": f"{PROJECT}/env/dev"}),
        *((BINDING, {"parent": f"{ACCOUNTS}/{each}", "tagValue": "tagValues/2"},
           {"name": f"%2F%2Fiam.googleapis.com%2Fprojects%2F{PROJECT}%2FserviceAccounts%2F{quoted}"
                    "/tagValues/2"})
          for each, quoted in (("123", "123"), (EMAIL, EMAIL.replace("@", "%40")))),
    ],
)  # fmt: skip
def test_a_service_fills_in_what_it_decides(
    tagged: Estate, token: str, inputs: Any, made: Any
) -> None:
    assert tagged.made(token, **inputs) == made


def rule(**denied: Any) -> dict[str, Any]:
    return {"parent": POINT, "name": "policy", "rules": [{"denyRule": denied}]}


@pytest.mark.parametrize(
    ("token", "inputs", "said"),
    [
        *((DENY, {"parent": each, "name": "policy"},
           f"400: Attachment point {each} is invalid., badRequest")
          for each in (f"projects/{PROJECT}", f"{POINT}/x", f"{POINT}%2F")),
        *((DENY, {"parent": POINT, "name": each}, f"400: Policy ID {each} is invalid., badRequest")
          for each in ("ab", "Abc", "1bc", "a" * 64, "a_b")),
        *((DENY, rule(**{field: [good, bad]}),
           f"400: {bad} is not supported in {field}., badRequest")
          for field, good, bad in (
              ("deniedPermissions", "iam.googleapis.com/roles.create", "iam.roles.create"),
              ("exceptionPermissions", "iam.googleapis.com/roles.*", "iam.googleapis.com/*"),
              ("deniedPrincipals", "principalSet://goog/public:all", "user:a@example.com"),
              ("exceptionPrincipals", "principal://goog/subject/a", "allUsers"))),
        (DENY, rule(denialCondition={"expression": "request.time > 1"}),
         "400: Condition request.time > 1 may only use resource tags., badRequest"),
        (VALUE, {"parent": "tagKeys/9"}, "404: tagKeys/9 was not found., notFound"),
        (BINDING, {"parent": "x", "tagValue": "tagValues/9"},
         "404: tagValues/9 was not found., notFound"),
        (BINDING, {"parent": f"{ACCOUNTS}/124", "tagValue": "tagValues/2"},
         "404: Service account 124 was not found., notFound"),
    ],
)  # fmt: skip
def test_what_a_service_does_not_take_is_refused_in_its_words(
    tagged: Estate, token: str, inputs: Any, said: str
) -> None:
    assert tagged.refusal(token, **inputs) == f"Making: googleapi: Error {said}"


@pytest.mark.parametrize(
    "expression",
    ["", "!resource.matchTag('a/env', 'prod')",
     "(resource.hasTagKey('a/env') || resource.matchTagId('tagKeys/1','tagValues/2')) && "
     "resource.hasTagKeyId('tagKeys/1')"],
)  # fmt: skip
def test_a_denial_may_depend_on_tags(estate: Estate, expression: str) -> None:
    inputs = rule(deniedPermissions=["a-b.googleapis.com/c.d"],
                  denialCondition={"expression": expression})  # fmt: skip
    cloud, kind = estate.kind(DENY)
    assert worded(kind.remake(cloud, PROJECT, "x", inputs, {})) == {"etag": DIGITS}


@pytest.mark.parametrize(
    ("token", "values", "project"),
    [
        (DENY, {"parent": POINT.replace(PROJECT, "local-a")}, "local-a"),
        (DENY, {"parent": "organizations/1"}, PROJECT),
        (KEY, {"parent": "projects/local-a"}, "local-a"),
        (KEY, {"parent": "organizations/1"}, PROJECT),
        (VALUE, {"parent": "tagKeys/3"}, "local-a"),
        (VALUE, {"parent": "tagKeys/9"}, PROJECT),
        (BINDING, {"parent": "//x.googleapis.com/projects/local-a"}, "local-a"),
        (BINDING, {"parent": "//x.googleapis.com/b"}, PROJECT),
    ],
)
def test_a_resource_belongs_to_the_project_of_its_parent(
    estate: Estate, token: str, values: Any, project: str
) -> None:
    estate.store.put(KEY, "tagKeys/3", "local-a", {}, {})
    cloud, kind = estate.kind(token)
    assert kind.project(cloud, values) == project
    if token == DENY:
        assert kind.owner(cloud, f"{values['parent']}/policy") == project


ID = f"projects/{PROJECT}/locations/us-west1/endpoints/12"
GIVEN = {"name": "12", "location": "us-west1"}


def deployed(estate: Estate, *ids: str) -> None:
    outputs = {"deployedModels": [{"id": each} for each in ids], "trafficSplit": '{"1": 100}'}
    estate.store.put(ENDPOINT, ID, PROJECT, {}, outputs)


@pytest.mark.parametrize(
    ("inputs", "made"),
    [
        ({}, {"trafficSplit": '{"1": 100}', "dedicatedEndpointDns": ""}),
        ({"dedicatedEndpointEnabled": True, "trafficSplit": '{"1": 60, "2": 40}'},
         {"trafficSplit": '{"1": 60, "2": 40}',
          "dedicatedEndpointDns": f"12.us-west1-{NUMBER}.prediction.vertexai.goog"}),
    ],
)  # fmt: skip
def test_an_update_keeps_what_is_deployed(estate: Estate, inputs: Any, made: Any) -> None:
    deployed(estate, "1", "2")
    cloud, kind = estate.kind(ENDPOINT)
    found = worded(kind.remake(cloud, PROJECT, ID, GIVEN | inputs, {}))
    models = [{"id": "1"}, {"id": "2"}]
    assert found == {"updateTime": TIME, "deployedModels": models, **made}


@pytest.mark.parametrize(
    ("split", "reason"),
    [
        ('{"3": 50, "1": 50}', "traffic_split names 3, which the endpoint does not have."),
        ('{"1": 99}', "traffic_split must sum to 100: {'1': 99}"),
        ('{"1": 60, "2": 41}', "traffic_split must sum to 100: {'1': 60, '2': 41}"),
    ],
)
def test_a_split_is_of_what_is_deployed(estate: Estate, split: str, reason: str) -> None:
    deployed(estate, "1", "2")
    cloud, kind = estate.kind(ENDPOINT)
    with pytest.raises(CloudError) as refused:
        kind.remake(cloud, PROJECT, ID, GIVEN | {"trafficSplit": split}, {})
    assert str(refused.value) == (
        f"Error updating Endpoint '{ID}': googleapi: Error 400: {reason}, badRequest"
    )


def test_an_endpoint_goes_once_nothing_is_deployed(estate: Estate) -> None:
    deployed(estate, "1", "2")
    cloud, kind = estate.kind(ENDPOINT)
    with pytest.raises(CloudError) as refused:
        kind.delete(cloud, ID, {"project": PROJECT})
    assert str(refused.value) == (
        f"Error deleting Endpoint '{ID}': googleapi: Error 400: Endpoint {ID} has deployed models: "
        "1, 2. Undeploy them first., failedPrecondition"
    )
    deployed(estate)
    write_policy(estate, ID, Binding("roles/viewer", ("group:g@example.com",)))
    kind.delete(cloud, ID, {"project": PROJECT})
    assert (estate.store.get(ENDPOINT, ID), estate.store.policies()) == (None, {})
    kind.delete(cloud, ID, {"project": PROJECT})
    assert kind.rules["trafficSplit"]('{"1": 100}') is None
    assert kind.rules["trafficSplit"]("{") == (
        '"traffic_split" contains an invalid JSON: Expecting property name enclosed in double '
        "quotes: line 1 column 2 (char 1)"
    )


@pytest.mark.parametrize(
    ("token", "values", "gone"),
    [
        ("gcp:projects/service:Service", {}, False),
        ("gcp:projects/service:Service", {"disableOnDestroy": True}, True),
        ("gcp:projects/serviceIdentity:ServiceIdentity", {}, False),
        ("gcp:kms/keyRing:KeyRing", {}, False),
        ("gcp:kms/cryptoKey:CryptoKey", {}, False),
        ("gcp:secretmanager/secret:Secret", {}, True),
    ],
)
def test_some_resources_outlive_their_deletion(
    estate: Estate, token: str, values: Any, gone: bool
) -> None:
    estate.store.put(token, "x", PROJECT, {}, {})
    cloud, kind = estate.kind(token)
    kind.delete(cloud, "x", {"project": PROJECT, **values})
    assert (estate.store.get(token, "x") is None) is gone


def test_apis_and_agents_may_be_declared_twice(estate: Estate) -> None:
    for token in ("service:Service", "serviceIdentity:ServiceIdentity"):
        cloud, kind = estate.kind(f"gcp:projects/{token}")
        inputs = {"service": "storage.googleapis.com"}
        assert kind.create(cloud, inputs).id == kind.create(cloud, inputs).id


def test_an_endpoint_without_models_has_an_empty_split(estate: Estate) -> None:
    cloud, kind = estate.kind(ENDPOINT)
    assert worded(kind.remake(cloud, PROJECT, ID, GIVEN, {})) == {
        "updateTime": TIME,
        "deployedModels": [],
        "trafficSplit": "{}",
        "dedicatedEndpointDns": "",
    }
