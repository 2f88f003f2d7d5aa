"""How rows are sent to an endpoint, what a refusal is, and what is printed of answers."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from google.auth.exceptions import RefreshError
from google.cloud.aiplatform_v1.types import Endpoint, PredictResponse
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.cli import app
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.serving import endpoints, rows, service
from vertex_training_cli.serving.rows import Prediction, RowsRefusedError

REF = StackRef(Path("/srv"), "p", "dev", "acme", "us-central1")
NAME = "projects/1/locations/us-central1/endpoints/7"


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
    ("error", "kind", "text"),
    [
        (exceptions.BadRequest("no"), RowsRefusedError, "400 no"),
        (exceptions.InternalServerError("no"), RowsRefusedError, "500 no"),
        (exceptions.GatewayTimeout("no"), RowsRefusedError, "504 no"),
        (exceptions.from_http_status(413, "no"), RowsRefusedError, "413 no"),
        (exceptions.Forbidden("no"), OperatorError, "the endpoint did not answer: no"),
        (RefreshError("no"), OperatorError, "the endpoint did not answer: no"),
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


def vt(*words: str, text: bytes = b"") -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["endpoints", *words, "--stack", "dev"], input=text)
    return done.exit_code, done.stdout, done.stderr


MOST = 1000


def read(text: bytes, most: int = MOST) -> list[rows.InputRow]:
    return list(rows.read_rows(io.BytesIO(text), most))


def answers(values: Iterable[Any], send: rows.Send, most: int = MOST) -> list[Prediction]:
    text = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    return list(rows.answer(rows.read_rows(io.BytesIO(text), most), send, most))


@pytest.mark.parametrize(
    "text",
    [
        b"{a: 1}", b"", b"   ", b"NaN", b"[Infinity]", b"[1e999]", b"\xff\xfe{}", b'"\\ud800"',
        b"[" * 900, b"{} {}", b"-", b"\x00", b"5" * 900 + b"x",
    ],
)  # fmt: skip
def test_what_is_no_json_is_named_by_its_line_and_the_next_is_read(text: bytes) -> None:
    bad, good = read(b"1\n" + text + b"\n2\n")[1:]
    assert (bad.line, good.line, good.value) == (2, 3, 2)
    assert bad.problem


def test_answers_that_are_too_few_are_no_answers() -> None:
    found = answers(range(4), lambda values: values[:-1])
    assert [each.problem for each in found] == ["0 answers for 1 rows"] * 4


def test_what_is_not_a_rows_fault_ends_it_all() -> None:
    def send(_values: Sequence[Any]) -> Sequence[Any]:
        raise RuntimeError("no rights")

    with pytest.raises(RuntimeError):
        answers([1, 2], send)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**52), 2**52) | st.floats(allow_nan=False,
    allow_infinity=False) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(VALUES)
def test_a_value_that_went_through_the_services_message_is_the_same(value: Any) -> None:
    assert rows.to_plain(ParseDict(value, Value())) == value
