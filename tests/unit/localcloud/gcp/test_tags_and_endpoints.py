"""What deny policies, tags and endpoints answer, without a plugin."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.errors import CloudError
from localgcp.inventory.store import ACCOUNT, ENDPOINT, Binding
from tests.unit.localcloud.gcp.estate import (
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
