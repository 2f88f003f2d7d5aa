"""How rows are sent to an endpoint, what a refusal is, and what is printed of answers."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from google.auth.exceptions import RefreshError
from google.cloud.aiplatform_v1.types import Endpoint, PredictResponse
from google.protobuf.struct_pb2 import Value
from requests.exceptions import ConnectionError as NoConnection
from typer.testing import CliRunner

from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.cli import app
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.serving import endpoints, rows, service
from vertex_training_cli.serving.rows import RowsRefusedError

REF = StackRef(Path("/srv"), "p", "dev", "acme", "us-central1")
NAME = "projects/1/locations/us-central1/endpoints/7"
DNS = "7.us-central1-1.prediction.vertexai.goog"


def endpoint(**more: Any) -> Endpoint:
    given = {"name": NAME, "display_name": "titanic", "deployed_models": [{"id": "1"}]}
    return Endpoint({**given, **more})


class Client:
    """Answers with the doubles of what it is sent, or with what is given."""

    def __init__(self) -> None:
        self.made: list[tuple[str, ...]] = []
        self.sent: list[tuple[str, list[float], float]] = []
        self.errors: Iterator[Exception] = iter(())

    def predict(self, *, endpoint: str, instances: Any, retry: Any, timeout: float) -> Any:
        return retry(self._predict)(endpoint, instances, timeout)

    def _predict(self, endpoint: str, instances: Any, timeout: float) -> PredictResponse:
        self.sent.append((endpoint, [each.number_value for each in instances], timeout))
        if error := next(self.errors, None):
            raise error
        doubled = [Value(number_value=2 * each.number_value) for each in instances]
        response = PredictResponse()
        PredictResponse.pb(response).predictions.extend(doubled)
        return response


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    found = Client()
    monkeypatch.setattr(service, "client", lambda *words: found.made.append(words) or found)
    return found


@pytest.mark.parametrize(
    ("more", "dns", "seconds"),
    [
        ({}, "", 60),
        ({"dedicated_endpoint_dns": DNS}, "", 60),
        ({"dedicated_endpoint_enabled": True, "dedicated_endpoint_dns": DNS}, DNS, 600),
        ({"dedicated_endpoint_enabled": True}, "", 60),
    ],
)
def test_rows_go_to_the_address_of_the_endpoint_within_its_time(
    client: Client, more: dict[str, Any], dns: str, seconds: int
) -> None:
    assert endpoints.sender(REF, endpoint(**more))([1, 2]) == [2, 4]
    assert client.made == [("acme", "us-central1", "prediction", dns)]
    assert client.sent == [(NAME, [1.0, 2.0], seconds)]


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (exceptions.BadRequest("no"), RowsRefusedError, "400 no"),
        (exceptions.InternalServerError("no"), RowsRefusedError, "500 no"),
        (exceptions.GatewayTimeout("no"), RowsRefusedError, "504 no"),
        (exceptions.from_http_status(413, "no"), RowsRefusedError, "413 no"),
        (exceptions.Forbidden("no"), OperatorError, "the endpoint did not answer: no"),
        (exceptions.NotFound("no"), OperatorError, "the endpoint did not answer: no"),
        (RefreshError("no"), OperatorError, "the endpoint did not answer: no"),
        (NoConnection("no"), OperatorError, "the endpoint did not answer: no"),
    ],
)
def test_a_refusal_may_be_a_rows_fault_or_nobodys(
    client: Client, error: Exception, kind: type[Exception], text: str
) -> None:
    client.errors = iter([error])
    with pytest.raises(kind) as refused:
        endpoints.sender(REF, endpoint())([1])
    assert str(refused.value) == text
    assert len(client.sent) == 1


@pytest.mark.parametrize("error", [exceptions.TooManyRequests, exceptions.ServiceUnavailable])
def test_one_that_is_not_ready_is_asked_again_while_there_is_patience(
    client: Client, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    client.errors = iter([error("wait"), error("wait")])
    assert endpoints.sender(REF, endpoint())([1]) == [2]
    assert len(client.sent) == 3
    monkeypatch.setattr(endpoints, "PATIENCE", 0.0)
    client.errors = iter([error("wait")])
    with pytest.raises(RowsRefusedError, match="wait"):
        endpoints.sender(REF, endpoint())([1])
    assert len(client.sent) == 4


def test_a_row_that_no_message_can_have_is_not_sent(client: Client) -> None:
    with pytest.raises(RowsRefusedError, match=r"^cannot be sent: "):
        endpoints.sender(REF, endpoint())([object()])
    assert client.sent == []


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (
            {"deployed_models": []},
            "endpoint titanic serves nothing. Hint: `vt endpoints wait` waits until something is",
        ),
        (
            {"network": "projects/1/global/networks/n"},
            "endpoint titanic is private. "
            "Hint: ask its Private Service Connect address from inside of the network",
        ),
    ],
)
def test_an_endpoint_that_cannot_answer_is_told(
    client: Client, more: dict[str, Any], text: str
) -> None:
    with pytest.raises(CommandError) as refused:
        endpoints.sender(REF, endpoint(**more))
    assert str(refused.value) == text
    local = StackRef(Path("/srv"), "p", "local", "local-x", "us-central1")
    if "network" in more:  # the local cloud has no networks
        assert endpoints.sender(local, endpoint(**more))([1]) == [2]


def test_answers_are_lines_and_what_failed_is_named_beside_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def send(values: Sequence[Any]) -> Sequence[Any]:
        if "bad" in values:
            raise RowsRefusedError("500 no\x1b")
        return [{"\u00e9": value} for value in values]

    monkeypatch.setattr(endpoints, "sender", lambda *_: send)
    assert endpoints._print_answers(REF, endpoint(), io.BytesIO(b"1\n2\n"))
    assert capsys.readouterr() == ('{"\u00e9": 1}\n{"\u00e9": 2}\n', "")
    assert not endpoints._print_answers(REF, endpoint(), io.BytesIO(b'1\n"bad"\n'))
    assert capsys.readouterr() == (
        '{"\u00e9": 1}\n{"error": "500 no\ufffd", "line": 2}\n',
        "vt: line 2: 500 no\ufffd\n",
    )


@pytest.mark.parametrize(("count", "told"), [(19, False), (20, False), (21, True), (300, True)])
def test_what_is_left_after_twenty_failures_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], count: int, told: bool
) -> None:
    def send(values: Sequence[Any]) -> Sequence[Any]:
        raise RowsRefusedError("500 no")

    monkeypatch.setattr(endpoints, "sender", lambda *_: send)
    assert not endpoints._print_answers(REF, endpoint(), io.BytesIO(b"1\n" * count))
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == min(count, 20)
    last = ["vt: 20 rows failed, the last in line 20: no more is sent"]
    assert err.splitlines()[20:] == (last if told else [])


@pytest.mark.parametrize(
    ("dedicated", "most"), [(False, rows.SHARED_BYTES), (True, rows.DEDICATED_BYTES)]
)
def test_a_request_is_as_large_as_the_endpoint_takes(
    monkeypatch: pytest.MonkeyPatch, dedicated: bool, most: int
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(endpoints, "sender", lambda *_: None)
    monkeypatch.setattr(rows, "read_rows", lambda _file, size: asked.append(size) or iter(()))
    given = endpoint(dedicated_endpoint_enabled=dedicated)
    assert endpoints._print_answers(REF, given, io.BytesIO())
    assert asked == [most]


class Listed:
    """Endpoints of a stack, by key; the reader of both kinds."""

    def __init__(self, **found: Endpoint) -> None:
        self.found = found

    def __call__(self, ref: StackRef) -> Listed:
        assert ref == REF
        return self

    def list(self) -> dict[str, Endpoint]:
        return self.found

    def find(self, wanted: str) -> Endpoint:
        return self.found[wanted]

    def versions(self) -> list[Any]:
        of = service.Version("m", "1", "j", "3", "", "", (), "", "models/m@1")
        return [of, replace(of, run="", name="models/m@2")]


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Listed:
    deployed = [{"id": "1", "model": "models/m", "model_version_id": "1"},
                {"id": "2", "model": "models/m", "model_version_id": "2"}]  # fmt: skip
    split = {"1": 90, "2": 10}
    made = Listed(titanic=endpoint(deployed_models=deployed, traffic_split=split))
    monkeypatch.setattr(service, "connected", lambda stack: REF if stack == "dev" else None)
    monkeypatch.setattr(service, "Endpoints", made)
    monkeypatch.setattr(service, "ModelReader", made)
    return made


def vt(*words: str, text: bytes = b"") -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["endpoints", *words, "--stack", "dev"], input=text)
    return done.exit_code, done.stdout, done.stderr


def test_a_list_has_split_reach_and_ids(listed: Listed) -> None:
    code, out, err = vt("list")
    lines = [re.split("  +", line.strip()) for line in out.splitlines()]
    assert (code, err, lines) == (
        0, "",
        [
            ["ENDPOINT", "SPLIT", "REACH", "ADDRESS", "ID"],
            ["titanic", "run 3: 90, model 2: 10", "public, shared", "7"],
        ],
    )  # fmt: skip
    code, out, err = vt("list", "--format", "json")
    assert json.loads(out) == [
        {"endpoint": "titanic", "split": {"run 3": 90, "model 2": 10}, "reach": "public, shared",
         "address": "", "id": "7", "name": NAME},
    ]  # fmt: skip
    listed.found.clear()
    assert vt("list") == (0, "", "vt: no endpoints\n")
    assert vt("list", "--format", "json") == (0, "[]\n", "")


@pytest.mark.parametrize(("answered", "code"), [(True, 0), (False, 1)])
def test_rows_come_from_a_file_or_from_stdin(
    listed: Listed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answered: bool, code: int
) -> None:
    asked: list[Any] = []

    def print_answers(ref: StackRef, found: Endpoint, file: Any) -> bool:
        asked.append((ref, found.name, file.read()))
        return answered

    monkeypatch.setattr(endpoints, "_print_answers", print_answers)
    (tmp_path / "rows").write_bytes(b"1\n")
    assert vt("predict", "titanic", "--input", str(tmp_path / "rows"))[0] == code
    assert vt("predict", "titanic", "-i", "-", text=b"2\n")[0] == code
    assert asked == [(REF, NAME, b"1\n"), (REF, NAME, b"2\n")]
