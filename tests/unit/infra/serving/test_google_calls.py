"""Calls on models, endpoints and operations: what is sent, and how each answer is read."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from google.api_core import exceptions
from google.longrunning import operations_pb2
from google.protobuf.json_format import MessageToDict, ParseDict
from google.rpc import status_pb2

from vertex_training.errors import (
    InDoubtError,
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
    PreconditionFailedError,
)
from vertex_training.serving.google.endpoints import GoogleEndpoints
from vertex_training.serving.google.operations import GoogleOperations
from vertex_training.serving.google.registry import GoogleRegistry
from vertex_training.serving.google.serving_api import DeployedModel, Endpoint, Model
from vertex_training.serving.protocol.ports import (
    Deployment,
    EndpointSnapshot,
    OperationSnapshot,
    VersionRequest,
    VersionSnapshot,
)

PARENT = "projects/acme/locations/us-central1"
NAME, MODEL = f"{PARENT}/endpoints/7", f"{PARENT}/models/titanic-dev"


class Begun:
    """A long operation as the client returns it."""

    def __init__(self, name: str = "operations/1", error: Exception | None = None) -> None:
        self.operation = operations_pb2.Operation(name=name)
        self._error = error

    def result(self, *, timeout: float) -> None:
        assert timeout == 120
        if self._error:
            raise self._error


class Client:
    """A client that answers as told, and remembers what was asked without how."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.asked = answers, list[tuple[str, Any]]()

    def __getattr__(self, method: str) -> Any:
        def call(*, retry: Any, timeout: float, **asked: Any) -> Any:
            self.asked.append((method, asked))
            found = self.answers[method]
            found = found.pop(0) if isinstance(found, list) else found
            if isinstance(found, Exception):
                raise found
            return found

        call.__name__ = method
        return call


def message(type_: Any, given: dict[str, Any]) -> Any:
    found = type_()
    ParseDict(given, type_.pb(found))
    return found


DEPLOYMENT = Deployment(
    "11", f"{MODEL}@3", "titanic run 3", 1, 2, {"machineType": "n1-standard-4"}, "a@b.c"
)


def test_replicas_are_changed_and_nothing_else() -> None:
    client: Any = Client(mutate_deployed_model=Begun())
    assert GoogleEndpoints(client).resize(NAME, DEPLOYMENT) == "operations/1"
    [(_, asked)] = client.asked
    assert asked["request"]["endpoint"] == NAME
    assert MessageToDict(DeployedModel.pb(asked["request"]["deployed_model"])) == {
        "id": "11",
        "dedicatedResources": {"minReplicaCount": 1, "maxReplicaCount": 2},
    }
    assert asked["request"]["update_mask"] == {
        "paths": ["dedicated_resources.min_replica_count", "dedicated_resources.max_replica_count"]
    }


def test_an_answer_without_an_operation_leaves_doubt() -> None:
    client: Any = Client(undeploy_model=Begun(""))
    with pytest.raises(InDoubtError, match="without an operation's name"):
        GoogleEndpoints(client).undeploy(NAME, "11")


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (exceptions.InvalidArgument("bad"), NotSubmittedError,
         "Vertex AI refused the deployment of titanic-dev@3, nothing was submitted: "
         "INVALID_ARGUMENT: bad Hint: correct the model or the endpoint in the stack file."),
        (exceptions.PermissionDenied("no"), PermissionDeniedError,
         "Vertex AI refused the deployment of titanic-dev@3, nothing was submitted: "
         "PERMISSION_DENIED: no Hint: grant what is missing; a new grant can take some minutes to "
         "have effect."),
        (exceptions.AlreadyExists("there"), NotSubmittedError,
         "Vertex AI refused the deployment of titanic-dev@3, nothing was submitted: "
         "ALREADY_EXISTS: there Hint: somebody else made it meanwhile: run again, which looks for "
         "it first."),
        (exceptions.Aborted("busy"), InDoubtError,
         "no certain answer from Vertex AI: ABORTED: busy"),
    ],
)  # fmt: skip
def test_refusal_names_the_refused_request(
    error: Exception, kind: type[Exception], text: str
) -> None:
    client: Any = Client(deploy_model=error)
    with pytest.raises(kind) as refused:
        GoogleEndpoints(client).deploy(NAME, DEPLOYMENT)
    assert str(refused.value) == text


def test_a_machine_that_is_no_message_is_not_sent() -> None:
    client: Any = Client()
    wrong = Deployment(**asdict(DEPLOYMENT) | {"machine": {"nonsense": 1}})
    with pytest.raises(NotSubmittedError, match="the request is no DeployedModel, nothing was"):
        GoogleEndpoints(client).deploy(NAME, wrong)


def test_split_is_written_only_if_its_etag_matches() -> None:
    client: Any = Client(update_endpoint=None)
    GoogleEndpoints(client).set_split(NAME, {"11": 100}, "e")
    endpoint = {"name": NAME, "traffic_split": {"11": 100}, "etag": "e"}
    asked = {"endpoint": endpoint, "update_mask": {"paths": ["traffic_split"]}}
    assert client.asked == [("update_endpoint", asked)]
    for error in (
        exceptions.Aborted("busy"),
        exceptions.FailedPrecondition("the Etag is another"),
        exceptions.InvalidArgument("etag mismatch"),
    ):
        client.answers["update_endpoint"] = error
        with pytest.raises(PreconditionFailedError):
            GoogleEndpoints(client).set_split(NAME, {}, "e")
    client.answers["update_endpoint"] = exceptions.InvalidArgument("shares must sum to 100")
    with pytest.raises(NotSubmittedError, match=r"refused the split, .*sum to 100"):
        GoogleEndpoints(client).set_split(NAME, {}, "e")


def test_endpoint_is_read_with_its_deployments() -> None:
    resources = {
        "machineSpec": {"machineType": "n1-standard-4", "acceleratorCount": 1},
        "minReplicaCount": 1,
    }
    found = message(
        Endpoint,
        {
            "name": NAME,
            "etag": "e",
            "trafficSplit": {"11": 100, "12": 0},
            "deployedModels": [
                {"id": "11", "model": f"{MODEL}@1", "modelVersionId": "3", "displayName": "d",
                 "dedicatedResources": resources | {"maxReplicaCount": 4},
                 "serviceAccount": "a@b.c"},
                {"id": "12", "model": f"{MODEL}@1", "dedicatedResources": resources},
            ],
        },
    )  # fmt: skip
    client: Any = Client(get_endpoint=found)
    read = GoogleEndpoints(client).get(NAME)
    machine = {"machineType": "n1-standard-4", "acceleratorCount": 1}
    assert read == EndpointSnapshot(
        NAME,
        {
            "11": Deployment("11", f"{MODEL}@3", "d", 1, 4, machine, "a@b.c"),
            "12": Deployment("12", MODEL, "", 1, 1, machine),
        },
        {"11": 100},
        "e",
    )
    assert read is not None
    assert [each.machine for each in read.deployed.values()] == [machine] * 2
    client.answers["get_endpoint"] = exceptions.NotFound("gone")
    assert GoogleEndpoints(client).get(NAME) is None
    client.answers["get_endpoint"] = exceptions.FailedPrecondition("off")
    with pytest.raises(OperatorError) as refused:
        GoogleEndpoints(client).get(NAME)
    assert str(refused.value) == f"Vertex AI did not read {NAME}: off"


@pytest.mark.parametrize(
    ("done", "code", "text", "read"),
    [
        (False, 0, "", OperationSnapshot("o", False)),
        (False, 7, "not yet", OperationSnapshot("o", False)),
        (True, 0, "", OperationSnapshot("o", True)),
        (True, 0, "a word", OperationSnapshot("o", True)),
        (True, 3, "bad.", OperationSnapshot("o", True, "bad.")),
        (True, 3, "", OperationSnapshot("o", True, "it failed with code 3.")),
    ],
)
def test_failed_operation_has_its_error(
    done: bool, code: int, text: str, read: OperationSnapshot
) -> None:
    error = status_pb2.Status(code=code, message=text)
    client: Any = Client(get_operation=operations_pb2.Operation(name="o", done=done, error=error))
    assert GoogleOperations(client).operation("o") == read
    assert client.asked == [("get_operation", {"request": {"name": "o"}})]


def test_unknown_operation_has_ended() -> None:
    client: Any = Client(get_operation=exceptions.NotFound("gone"))
    assert GoogleOperations(client).operation("o") == OperationSnapshot("o", True)
    client.answers["get_operation"] = exceptions.FailedPrecondition("off")
    with pytest.raises(OperatorError, match="Vertex AI did not read o: off"):
        GoogleOperations(client).operation("o")


def test_operations_that_run_are_listed_page_by_page() -> None:
    def page(*names: str, token: str = "") -> Any:
        found = [operations_pb2.Operation(name=n, done=n.startswith("d")) for n in names]
        return operations_pb2.ListOperationsResponse(operations=found, next_page_token=token)

    client: Any = Client(list_operations=[page("a", "done", token="2"), page("b")])
    assert GoogleOperations(client).running(NAME) == ["a", "b"]
    assert client.asked == [
        ("list_operations", {"request": {"name": NAME, "page_token": token}}) for token in ("", "2")
    ]
    client.answers["list_operations"] = exceptions.NotFound("gone")
    assert GoogleOperations(client).running(NAME) == []
    client.answers["list_operations"] = exceptions.FailedPrecondition("off")
    with pytest.raises(OperatorError) as refused:
        GoogleOperations(client).running(NAME)
    assert str(refused.value) == (
        f"Vertex AI did not list operations of {NAME}: FAILED_PRECONDITION: off"
    )


REQUEST = VersionRequest(
    PARENT, "dev", "titanic", 3, "id1", "{}", "d" * 64, {}, model_id="titanic-dev", alias="run-3"
)


def version(number: int, *, aliases: tuple[str, ...] = (), created: int = 0) -> Any:
    return message(
        Model,
        {
            "name": f"{MODEL}@9",
            "versionId": str(number),
            "versionAliases": list(aliases),
            "versionCreateTime": f"1970-01-01T00:00:{created:02}Z",
            "labels": {"a": "b"},
            "deployedModels": [{"endpoint": NAME}],
        },
    )


@pytest.mark.parametrize("there", [True, False])
def test_a_model_is_made_by_its_first_version(there: bool) -> None:
    answer = version(1) if there else exceptions.NotFound("none yet")
    client: Any = Client(get_model=answer, upload_model=Begun())
    body = json.dumps({"displayName": "titanic", "labels": {"own": "1", "team": "x"}})
    assert GoogleRegistry(client).upload(REQUEST, body, {"team": "ml"}) == "operations/1"
    [(_, read), (_, asked)] = client.asked
    assert read == {"name": MODEL}
    sent = asked["request"]
    assert (sent.parent, sent.parent_model, sent.model_id) == (
        *(PARENT, MODEL if there else "", "" if there else "titanic-dev"),
    )
    assert MessageToDict(Model.pb(sent.model)) == {
        "displayName": "titanic",
        "labels": {"own": "1", "team": "ml"},
    }


def test_refused_or_unclear_upload_is_reported() -> None:
    client: Any = Client(get_model=version(1), upload_model=Begun(""))
    registry = GoogleRegistry(client)
    with pytest.raises(InDoubtError, match="without an operation's name"):
        registry.upload(REQUEST, "{}", {})
    client.answers["upload_model"] = exceptions.InvalidArgument("bad")
    with pytest.raises(NotSubmittedError, match="refused the upload of run 3 of model 'titanic'"):
        registry.upload(REQUEST, "{}", {})
    client.asked.clear()
    with pytest.raises(NotSubmittedError, match="the request is no Model, nothing was sent"):
        registry.upload(REQUEST, '{"nonsense": 1}', {})
    assert client.asked == []
    client.answers["get_model"] = exceptions.FailedPrecondition("off")
    with pytest.raises(OperatorError) as refused:
        registry.upload(REQUEST, "{}", {})
    assert str(refused.value) == f"Vertex AI did not read {MODEL}: off"


def snapshot(number: int, created: int = 0) -> VersionSnapshot:
    return VersionSnapshot(f"{MODEL}@{number}", created * 10**9, {"a": "b"}, (NAME,))


def test_versions_have_the_name_of_the_model_and_their_number() -> None:
    client: Any = Client(get_model=version(3, created=5))
    registry = GoogleRegistry(client)
    assert registry.version(f"{MODEL}@run-3") == snapshot(3, 5)
    client.answers["get_model"] = exceptions.NotFound("gone")
    assert registry.version(f"{MODEL}@run-3") is None
    client.answers["list_model_versions"] = (version(1), version(2))
    assert registry.versions(MODEL) == [snapshot(1), snapshot(2)]
    assert client.asked[-1] == ("list_model_versions", {"name": MODEL})
    client.answers["list_model_versions"] = exceptions.NotFound("gone")
    assert registry.versions(MODEL) == []
    client.answers["list_model_versions"] = exceptions.FailedPrecondition("off")
    with pytest.raises(OperatorError) as refused:
        registry.versions(MODEL)
    assert str(refused.value) == f"Vertex AI did not list versions of {MODEL}: off"


def deleted(name: str, *there: Any, **answers: Any) -> tuple[str, list[tuple[str, Any]]]:
    """Why a version was not deleted, and what was asked beside the list."""
    client: Any = Client(list_model_versions=there, **answers)
    said = GoogleRegistry(client).delete_version(name)
    return said, client.asked[1:]


ONE, TWO, THREE = (f"{MODEL}@{number}" for number in (1, 2, 3))


def test_a_version_is_deleted_and_the_last_one_with_its_model() -> None:
    assert deleted(TWO, version(1)) == ("", [])
    assert deleted(ONE) == ("", [])
    assert deleted(ONE, version(1), delete_model=Begun()) == (
        "", [("delete_model", {"name": MODEL})]
    )  # fmt: skip
    plain = deleted(ONE, version(1), version(2), get_model=version(1), delete_model_version=Begun())
    assert plain == (
        "", [("get_model", {"name": ONE}), ("delete_model_version", {"name": ONE})]
    )  # fmt: skip


def test_the_newest_other_version_becomes_the_default() -> None:
    there = (version(1, created=9), version(2, created=7), version(3, created=5))
    default = version(1, aliases=("default", "run-1"))
    _, asked = deleted(
        ONE, *there, get_model=default, merge_version_aliases=None, delete_model_version=Begun()
    )
    merge = {"name": TWO, "version_aliases": ["default"]}
    assert asked[1:] == [
        ("merge_version_aliases", merge),
        ("delete_model_version", {"name": ONE}),
    ]
    gone = exceptions.NotFound("gone")
    _, asked = deleted(ONE, *there, get_model=gone, delete_model_version=Begun())
    assert [method for method, _ in asked] == ["get_model", "delete_model_version"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (exceptions.NotFound("gone"), ""),
        (exceptions.FailedPrecondition("is deployed"), "FAILED_PRECONDITION: is deployed"),
        (Begun(error=exceptions.Aborted("busy")), "ABORTED: busy"),
        (Begun(error=TimeoutError("late")), "TimeoutError: late"),
        (Begun(error=exceptions.NotFound("gone")), ""),
    ],
)
def test_failed_deletion_of_a_version_is_reported(answer: Any, said: str) -> None:
    assert deleted(ONE, version(1), delete_model=answer)[0] == said
