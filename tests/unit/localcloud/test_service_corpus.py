"""Calls of ``tests/corpus/services`` get the answers stated there, over REST.

A file has ``tables`` (a right request, and changes of it that are accepted or refused) and
``sequences`` (calls in order, each with the fields of its answer or the refusal).
"""

from __future__ import annotations

import copy
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import requests
import yaml

from localgcp.inventory.store import Binding, project_number
from tests.contract.cloud import ContractCloud, running
from tests.unit.localcloud.conftest import PROJECT, wrong_fields
from tests.unit.localcloud.serving.conftest import PROGRAM

CORPUS: Final = Path(__file__).parents[2] / "corpus" / "services"
FILES: Final = {file.stem: yaml.safe_load(file.read_text()) for file in CORPUS.glob("*.yaml")}
NUMBER: Final = project_number(PROJECT)
NAMES: Final = {
    "PROJECT": PROJECT,
    "NUMBER": NUMBER,
    "PLACE": f"projects/{PROJECT}/locations/us-central1",
    "PYTHON": sys.executable,
    "SERVER": str(PROGRAM),
    "NUMBERED": f"projects/{NUMBER}/locations/us-central1",
}
TABLES: Final = [
    pytest.param(table, row, id=f"{service}-{name}-{number}")
    for service, file in FILES.items()
    for name, table in file.get("tables", {}).items()
    for number, row in enumerate(
        [*({"set": each} for each in table.get("accepted", [])), *table["refused"]]
    )
]
SEQUENCES: Final = [
    pytest.param(calls, id=f"{service}-{name}")
    for service, file in FILES.items()
    for name, calls in file.get("sequences", {}).items()
]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContractCloud]:
    with running(tmp_path_factory.mktemp("cloud")) as made:
        for file in FILES.values():
            run(made, file.get("before", []))
        yield made


def filled(value: Any, names: dict[str, str]) -> Any:
    """Return the value with ``$NAME`` replaced in its texts and ``{times: [x, n]}`` repeated."""
    match value:
        case {"times": [part, int(count)]}:
            return filled(part, names) * count
        case {"range": int(count)}:
            return [*range(count)]
        case dict():
            return {filled(key, names): filled(each, names) for key, each in value.items()}
        case list():
            return [filled(each, names) for each in value]
        case str():
            return re.sub(r"\$(\w+)", lambda found: names.get(found[1], found[0]), value)
    return value


def changed(right: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return the request with values set at paths (``a.0.b``); None removes a value."""
    made: Any = copy.deepcopy(right)
    for path, value in changes.items():
        *above, last = [int(part) if part.isdecimal() else part for part in path.split(".")]
        place = made
        for part in above:
            place = place[part] if isinstance(part, int) else place.setdefault(part, {})
        if value is None:
            del place[last]
        else:
            place[last] = value
    return made


def send(cloud: ContractCloud, call: str, body: Any) -> requests.Response:
    verb, path = call.split(" ", 1)
    sent = {"data": body.encode()} if isinstance(body, str) else {"json": body}
    return cloud.session.request(verb, cloud.url + path, timeout=60, **sent)


def refusal(response: requests.Response) -> str:
    """Return ``CODE: message``, or ``CODE: field: text`` for each wrong field, one per line."""
    error = response.json()["error"]
    code, message = error.get("status", error["code"]), error["message"]
    if not message.startswith("List of found errors:"):
        return f"{code}: {message}"
    return "\n".join(f"{code}: {field}: {text}" for field, text in wrong_fields(message))


@pytest.mark.parametrize(("table", "row"), TABLES)
def test_changed_request_is_accepted_or_refused(
    cloud: ContractCloud, table: dict[str, Any], row: dict[str, Any]
) -> None:
    body = filled(changed(table["right"], row["set"]), NAMES)
    response = send(cloud, filled(table["call"], NAMES), body)
    if "refused" not in row:
        assert response.status_code == 200, response.text
        return
    assert response.status_code >= 400, response.text
    assert refusal(response) == filled(row["refused"], NAMES)


def differences(expected: Any, got: Any, path: str = "") -> Iterator[str]:
    """Yield where an answer lacks what is expected; further fields of objects may be there."""
    match expected, got:
        case dict(), dict():
            for key, value in expected.items():
                yield from differences(value, got.get(key), f"{path}.{key}")
        case list(), list() if len(expected) == len(got):
            for number, pair in enumerate(zip(expected, got, strict=True)):
                yield from differences(*pair, f"{path}.{number}")
        case str(), str() if expected.startswith("~"):
            if not re.search(expected[1:], got):
                yield f"{path}: {got!r} has no {expected[1:]!r}"
        case _ if expected != got:
            yield f"{path}: {got!r}, not {expected!r}"


def prepare(cloud: ContractCloud, step: dict[str, Any]) -> None:
    """Change what belongs to the cloud itself: resources of a stack, policies, objects."""
    for type_, id_, outputs in step.get("resources", []):
        cloud.store.put(type_, id_, PROJECT, {}, outputs)
    for resource, bindings in step.get("policies", {}).items():
        policy = tuple(Binding(role, tuple(members)) for role, members in bindings.items())
        etag = cloud.store.policy(resource).etag
        cloud.store.set_policy(resource, policy, expected_etag=etag)


def finished(cloud: ContractCloud, call: str, found: Any) -> Any:
    """Return the operation, or the job that a call reads, when it is done."""
    deadline = time.monotonic() + 60
    while not (found.get("done") or found.get("status", {}).get("state") == "DONE"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
        again = f"GET /v1/{found['name']}" if "name" in found else call
        found = send(cloud, again, None).json()
    return found


def run(cloud: ContractCloud, calls: list[dict[str, Any]]) -> None:
    """Send the calls in order; fail at the first answer that differs."""
    names = dict(NAMES)
    for number, step in enumerate(filled(calls, {})):
        if "call" not in step:
            prepare(cloud, filled(step, names))
            continue
        call = filled(step["call"], names)
        response = send(cloud, call, filled(step.get("body"), names))
        where = f"call {number}, {call}: {response.text[:400]}"
        if "refused" in step:
            assert response.status_code >= 400, where
            found = [*differences(filled(step["refused"], names), refusal(response))]
        else:
            assert response.status_code == 200, where
            answer = response.json()
            if step.get("waits"):
                answer = finished(cloud, call, answer)
            found = [*differences(filled(step.get("answer", {}), names), answer)]
            names |= {name: _at(answer, path) for name, path in step.get("keep", {}).items()}
        assert found == [], where


@pytest.mark.parametrize("calls", SEQUENCES)
def test_calls_in_order_have_their_answers(
    cloud: ContractCloud, calls: list[dict[str, Any]]
) -> None:
    run(cloud, calls)


def _at(answer: Any, path: str) -> str:
    for part in path.split("."):
        answer = answer[int(part)] if isinstance(answer, list) else answer[part]
    return answer
