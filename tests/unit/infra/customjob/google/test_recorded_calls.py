"""Calls of Google's services: what is sent, and how each answer is read (``tests/corpus/google``).

An entry has the ``call`` (an object of ``OBJECTS``, a method, arguments), the ``answers`` of the
service, the ``result`` or the ``error``, and the requests that are ``sent``. gRPC answers have
the name of a method, and come from a server on this machine, through Google's client; REST answers
are a list. The last answer is repeated. ``$NAME`` stands for one of the file's ``names``;
``{$: NAME, …}`` changes it. Equal requests one after the other are listed once. An entry without
``sent`` sends what the entry before it sends.
``RECORD=1`` writes the expected values again.
"""

from __future__ import annotations

import dataclasses
import email
import io
import json
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from email.utils import formatdate
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import google.auth
import grpc
import proto
import pytest
import requests
import urllib3
import yaml
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform_v1, batch_v1
from google.cloud.logging_v2 import types as logging_types
from google.longrunning import operations_pb2
from google.protobuf.empty_pb2 import Empty
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from requests.adapters import HTTPAdapter

from tests.unit.infra.customjob.recorded import filled, in_turn, line
from vertex_training.customjob.google import (
    backends,
    intent_store,
    logs,
    prerequisites,
)
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, TUNING_JOB
from vertex_training.customjob.protocol.idle import Reading
from vertex_training.customjob.protocol.ports import IntentRecord, IntentState
from vertex_training.errors import OperatorError, PreconditionFailedError
from vertex_training.serving import google as serving
from vertex_training.serving.ports import Deployment, VersionRequest
from vertex_training.snapshots.google import BigQuery, StorageFiles

FOLDER: Final = Path(__file__).parents[4] / "corpus" / "google"
FILES: Final = sorted(FOLDER.glob("*.yaml"))
CORPUS: Final[dict[str, Any]] = {file.stem: yaml.safe_load(file.read_text()) for file in FILES}
CASES: Final = [(name, number) for name in CORPUS for number in range(len(CORPUS[name]["cases"]))]
PLACE: Final = ("local-x", "us-central1")
TOPIC: Final = {"pubsubTopic": "projects/p/topics/t", "message": {"type": "JOB_STATE_CHANGED"}}
SUBNET: Final = "projects/p/regions/us-central1/subnetworks/s"
OBJECTS: Final[dict[str, Callable[[], Any]]] = {
    "jobs": lambda: backends.connect(*PLACE, CUSTOM_JOB),
    "tuning": lambda: backends.connect(*PLACE, TUNING_JOB),
    "batch": lambda: backends.connect(*PLACE, BATCH_JOB),
    "batch in a subnet": lambda: backends.connect(*PLACE, BATCH_JOB, "", SUBNET, [TOPIC]),
    "list of Batch": lambda: backends.BatchJobs(backends.shared_client(*PLACE)),
    "logs": lambda: logs.connect("local-x"),
    "tensorboards": lambda: prerequisites,
    "endpoints": lambda: serving.connect_endpoints(*PLACE),
    "registry": lambda: serving.connect_registry(*PLACE),
    "questions": lambda: prerequisites.connect("acme-ml"),
    "utilization": lambda: logs,
    "bigquery": lambda: BigQuery("acme-ml", "EU"),
    "files": lambda: StorageFiles(
        intent_store.storage_client("acme-recorded"), "data", "snapshots/x"
    ),
    "records": lambda: intent_store.connect("acme-recorded", "control", "tuning/"),
}
ARGUMENTS: Final[dict[str, Callable[..., Any]]] = {
    "Deployment": Deployment,
    "Record": lambda state, job="": IntentRecord("id1", IntentState[state], "me", job),
    "Version": lambda: VersionRequest(
        *("projects/local-x/locations/us-central1", "dev", "titanic", 3, "id1", "{}", "d" * 64, {}),
        model_id="titanic-dev",
        alias="run-3",
    ),
    "turns": lambda *values: in_turn(*values),
    "bytes": lambda text: text.encode(),
}
#: Where the messages of a method are, by the beginning of its service's name.
MODULES: Final = {
    "google.cloud.batch": batch_v1,
    "google.cloud.aiplatform": aiplatform_v1,
    "google.logging": logging_types,
    "google.longrunning": operations_pb2,
}
#: Answers that are a long operation, or nothing.
LONG: Final = re.compile("Delete|Deploy|Undeploy|Mutate|Upload")
EMPTY: Final = re.compile("CancelCustomJob|CancelHyper")


def argument(value: Any) -> Any:
    match value:
        case {**only} if len(only) == 1 and (kind := next(iter(only))) in ARGUMENTS:
            return ARGUMENTS[kind](*only[kind])
    return value


def plain(value: Any) -> Any:
    """Return a result as data, without empty fields."""
    if dataclasses.is_dataclass(value):
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        return {name: plain(each) for name, each in fields.items() if each}
    if isinstance(value, proto.Message):
        return MessageToDict(type(value).pb(value))
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return [plain(each) for each in value]


class Service(grpc.GenericRpcHandler):
    """Answers of one entry, and the requests for them."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[], Any]] = {}
        self.sent: list[Any] = []

    def service(self, handler_call_details: Any) -> Any:
        service, method = handler_call_details.method[1:].split("/")
        module = next(MODULES[prefix] for prefix in MODULES if service.startswith(prefix))

        def respond(data: bytes, context: Any) -> bytes:
            message = message_of(getattr(module, f"{method}Request"))
            self.sent.append([method, MessageToDict(message.FromString(data))])
            answer = self.answers[method]()
            match answer:
                case {"code": code, **more}:
                    refuse(context, code, more.get("text", "as told"), more.get("reason"))
                case str():
                    refuse(context, *answer.split(": ", 1))
            return ParseDict(answer or {}, answer_type(module, method)()).SerializeToString()

        return grpc.unary_unary_rpc_method_handler(respond)


def message_of(kind: Any) -> Any:
    return kind.pb() if isinstance(kind, proto.message.MessageMeta) else kind


def answer_type(module: Any, method: str) -> type[Message]:
    if module is operations_pb2:
        response = f"{method}Response"
        return getattr(module, response, operations_pb2.Operation)
    if EMPTY.match(method):
        return Empty
    if LONG.match(method) or method == "CancelJob":
        return operations_pb2.Operation
    if hasattr(module, f"{method}Response"):
        return message_of(getattr(module, f"{method}Response"))
    if method == "MergeVersionAliases":
        return message_of(aiplatform_v1.Model)
    return message_of(getattr(module, re.sub("^(Get|Create|Update)", "", method)))


def refuse(context: Any, code: str, text: str = "as told", reason: str | None = None) -> None:
    status = grpc.StatusCode[code]
    if reason:
        details = status_pb2.Status(code=status.value[0], message=text)
        details.details.add().Pack(error_details_pb2.ErrorInfo(reason=reason))
        context.set_trailing_metadata([("grpc-status-details-bin", details.SerializeToString())])
    context.abort(status, text)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    handler = Service()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers([handler])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{port}")
        yield handler
    server.stop(None)


def content(request: requests.PreparedRequest) -> Any:
    """Return the body of a request; of an upload, its parts."""
    body: Any = request.body or b""
    data = body.encode() if isinstance(body, str) else bytes(body)
    kind: Any = request.headers.get("Content-Type", "")
    kind = kind if isinstance(kind, bytes) else kind.encode()
    if not kind.startswith(b"multipart"):
        return read_json(data.decode())
    parts: Any = email.message_from_bytes(b"Content-Type: " + kind + b"\n\n" + data).get_payload()
    return [read_json(part.get_payload()) for part in parts]


def read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def rest(service: Service, answers: list[Any], patch: pytest.MonkeyPatch) -> None:
    """Answer requests by HTTP."""
    following = in_turn(*answers)

    def send(_: Any, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        line = f"{request.method} {(request.url or '').removeprefix('https://')}"
        line = re.sub(r"Time=[0-9TZ%.A-]+", "Time=NOW", line)
        service.sent.append([line, body] if (body := content(request)) else [line])
        answer = following()
        if isinstance(answer, str):
            raise requests.ConnectionError(answer)
        body = answer.get("body", answer.get("text", ""))
        status = answer.get("status", 200)
        raw = urllib3.HTTPResponse(
            io.BytesIO((body if isinstance(body, str) else json.dumps(body)).encode()),
            {
                "Date": formatdate(time.time() + answer.get("skew", 0), usegmt=True),
                "Content-Type": "application/json",
                "X-Goog-Generation": "7",
            },
            status,
            reason=HTTPStatus(status).phrase,
            preload_content=False,
        )
        found = HTTPAdapter().build_response(request, raw)
        _ = options.get("stream") or found.content
        return found

    patch.delenv("VERTEX_EMULATOR_HOST")
    patch.setenv("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
    prerequisites.session.cache_clear()
    patch.setattr(requests.Session, "send", send)
    patch.setattr(time, "sleep", lambda seconds: service.sent.append([f"pause {seconds:g}"]))
    patch.setattr(google.auth, "default", lambda **_: (AnonymousCredentials(), "acme-ml"))


def skip_time(patch: pytest.MonkeyPatch) -> None:
    """Move the clock instead of waiting."""
    real, skipped = time.monotonic, [0.0]
    patch.setattr(time, "sleep", lambda seconds: skipped.append(skipped.pop() + seconds))
    patch.setattr(time, "monotonic", lambda: real() + skipped[0])


def observe(entry: Mapping[str, Any], service: Service, patch: pytest.MonkeyPatch) -> Any:
    target, method, *given = entry["call"]
    options = given.pop() if given and isinstance(given[-1], dict) and "=" in given[-1] else {}
    service.sent = []
    answers = entry.get("answers", {})
    if isinstance(answers, list):
        rest(service, answers, patch)
    else:
        service.answers = {
            name: in_turn(*(value if isinstance(value, list) else [value]))
            for name, value in answers.items()
        }
        skip_time(patch)
    keywords = {key: argument(value) for key, value in options.get("=", {}).items()}
    found: dict[str, Any] = {}
    try:
        result = getattr(OBJECTS[target](), method)(*map(argument, given), **keywords)
        if isinstance(result, Reading):
            assert abs(result.now - time.time()) < 5
            result = result.series
        found["result"] = plain(result)
    except (OperatorError, PreconditionFailedError) as error:
        text, *_ = f"{type(error).__name__}: {error}".split("\n")  # the rest is of protobuf
        found["error"] = re.sub(r"(differ by [+-])\d+", r"\1N", text.removesuffix(": "))
    sent = [without_chance(each) for each in service.sent]
    found["sent"] = [each for each, before in zip(sent, [None, *sent], strict=False)
                     if each != before]  # fmt: skip
    return json.loads(json.dumps(found))


def without_chance(sent: list[Any]) -> list[Any]:
    """Replace the id of a request, which differs each time."""
    if sent[0] == "CreateJob":
        assert uuid.UUID(sent[1]["requestId"]).version == 4
        sent[1] = {**sent[1], "requestId": "UUID"}
    return sent


@pytest.mark.filterwarnings("ignore:Unrecognized")
@pytest.mark.parametrize(("name", "number"), CASES)
def test_a_call_is_sent_and_its_answer_read_as_recorded(
    name: str, number: int, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = CORPUS[name]
    entry = corpus["cases"][number]
    found = observe(filled(entry, corpus["names"]), service, monkeypatch)
    monkeypatch.undo()
    prerequisites.session.cache_clear()
    if os.environ.get("RECORD"):
        for key in ("result", "error", "sent"):
            entry.pop(key, None)
        entry |= found
        if entry is corpus["cases"][-1]:
            (FOLDER / f"{name}.yaml").write_text(dump(name))
        return
    expected = {key: entry[key] for key in ("result", "error") if key in entry}
    sent = next(each["sent"] for each in corpus["cases"][number::-1] if "sent" in each)
    assert found == filled({**expected, "sent": sent}, corpus["names"])


def dump(name: str) -> str:
    """Return a file of the corpus with one line for each part of an entry."""
    names, path = CORPUS[name]["names"], FOLDER / f"{name}.yaml"
    texts = {key: filled(each, names) for key, each in names.items() if isinstance(each, str)}
    found = [path.read_text().partition("\n")[0], "names:"]
    found += [f"  {key}: {line(value)}" for key, value in names.items()]
    found.append("cases:")
    before = None
    for entry in CORPUS[name]["cases"]:
        shown = {key: entry[key] for key in entry if key != "sent" or entry["sent"] != before}
        before = entry["sent"]
        lines = [f"  {key}: {line(value)}" for key, value in shown.items()]
        text = "\n".join(lines)
        for key in sorted(texts, key=lambda key: -len(texts[key])):
            text = text.replace(texts[key], f"${key}")
        found.append(f"-{text[1:]}")
    return "\n".join(found) + "\n"
