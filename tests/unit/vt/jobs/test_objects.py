"""Listings of buckets, by the official client against the emulator's answers."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.jobs.objects import CheckpointLook
from vertex_training_cli.run import submission

PROJECT = "local-objects"


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers of ``objects.list`` by prefix; what it does not have is refused."""

    answers: dict[str, Any] = {}  # noqa: RUF012 - filled by each test
    asked: list[str] = []  # noqa: RUF012
    versions: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        from urllib.parse import parse_qs, urlsplit

        url = urlsplit(self.path)
        prefix = parse_qs(url.query).get("prefix", [""])[0]
        if url.path == "/storage/v1/b/bucket/o":  # a process may still ask who had this port before
            self.asked.append(prefix)
            self.versions.append(parse_qs(url.query).get("versions", [""])[0].lower())
        found = self.answers.get(prefix)
        body = json.dumps(found if found is not None else {"error": {"code": 403}}).encode()
        self.send_response(200 if found is not None else 403)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server.server_port}")
    Answers.answers, Answers.asked, Answers.versions = {}, [], []
    yield Answers.answers
    server.shutdown()
    server.server_close()


def item(name: str, hour: int) -> dict[str, str]:
    return {"name": name, "updated": f"2026-11-22T{hour:02}:00:00Z"}


def job(output: str) -> Any:
    directory = SimpleNamespace(output_uri_prefix=output)
    return SimpleNamespace(job_spec=SimpleNamespace(base_output_directory=directory))


def test_checkpoints_are_looked_for_where_the_service_has_jobs_write_them(
    answers: dict[str, Any],
) -> None:
    answers["out/checkpoints/"] = {"items": [item("out/checkpoints/1", 7)]}
    found = CheckpointLook(PROJECT, 30).newest(job("gs://bucket/out/"))
    assert found is not None
    assert found.newest == datetime(2026, 11, 22, 7, tzinfo=UTC)


def test_after_a_refused_look_nobody_asks_again(answers: dict[str, Any]) -> None:
    look = CheckpointLook(PROJECT, 30)
    assert [look.newest(job("gs://bucket/out")) for _ in range(3)] == [None] * 3
    assert Answers.asked.count("out/checkpoints/") == 1


@pytest.mark.parametrize("number", ["7", "0"])  # the emulator has no numbers of projects
def test_a_bucket_of_the_stacks_project_is_there(answers: dict[str, Any], number: str) -> None:
    answers[""] = {"name": "p-control-dev", "projectNumber": number}
    assert submission.has_bucket(PROJECT, "p-control-dev", "7")


def test_a_bucket_that_another_project_made_under_the_stacks_name_gets_no_code(
    answers: dict[str, Any],
) -> None:
    """Names are global, and those of a stack's buckets can be guessed."""
    answers[""] = {"name": "p-control-dev", "projectNumber": "666"}
    with pytest.raises(CommandError, match="bucket p-control-dev belongs to project 666"):
        submission.has_bucket(PROJECT, "p-control-dev", "7")
