"""REST at the port of the job service."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any

import pytest

from tests.unit.localcloud.conftest import PARENT, Cloud

JOBS = f"/v1/{PARENT}/customJobs"
BODY = {
    "displayName": "rest",
    "jobSpec": {
        "workerPoolSpecs": [
            {
                "machineSpec": {"machineType": "n1-standard-4"},
                "replicaCount": "1",
                "containerSpec": {"imageUri": "python:3.11", "command": ["sleep", "60"]},
            }
        ]
    },
}


def ask(
    cloud: Cloud, verb: str, target: str, body: Any = None, **headers: str
) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", cloud.port, timeout=60)
    data = json.dumps(body) if isinstance(body, dict) else body
    connection.request(verb, target, data, headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text)


PAGES = {
    "origin": {"Origin": "http://evil.example"},
    "origin of this machine": {"Origin": "http://127.0.0.1:8080"},
    "fetch": {"Sec-Fetch-Site": "cross-site"},
    "rebinding": {"Host": "evil.example"},
    "rebinding without a port": {"Host": "127.0.0.1"},
}


@pytest.mark.parametrize("headers", PAGES.values(), ids=PAGES)
def test_a_web_page_submits_no_job(cloud: Cloud, headers: dict[str, str]) -> None:
    status, answer = ask(cloud, "POST", JOBS, BODY, **headers)
    assert status == 403
    assert "local cloud: " in answer["error"]["message"]
    assert ask(cloud, "GET", JOBS) == (200, {})


def test_nonsense_and_a_client_that_goes_away_harm_nobody(cloud: Cloud) -> None:
    for data in (b"\x16\x03\x01\x02", b"POST", b"PRI * HTTP/2.0\r\n\r\nXX", b"GET / HTTP/1.1\r\n",
                 f"POST {JOBS} HTTP/1.1\r\nContent-Length: 9\r\n\r\n{{".encode(),
                 f"POST {JOBS} HTTP/1.1\r\nContent-Length: -9\r\n\r\n".encode()):  # fmt: skip
        with socket.create_connection(("127.0.0.1", cloud.port)) as connection:
            connection.sendall(data)
    assert ask(cloud, "GET", JOBS) == (200, {})


def test_a_body_beyond_32_mib_is_refused(cloud: Cloud) -> None:
    status, answer = ask(cloud, "POST", JOBS, b" " * ((32 << 20) + 1))
    assert (status, "larger than 32 MiB" in answer["error"]["message"]) == (413, True)


def _send(connection: http.client.HTTPConnection) -> None:
    connection.request("POST", JOBS, json.dumps(BODY))
    connection.getresponse()


def test_open_connection_gets_no_answer_after_the_server_has_stopped(cloud: Cloud) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", cloud.port, timeout=60)
    connection.request("GET", JOBS)
    assert connection.getresponse().read() == b"{}\n"
    cloud.stop()
    connection.auto_open = 0
    with pytest.raises((http.client.HTTPException, OSError)):
        _send(connection)
    assert cloud.jobs.list() == []
