"""``vt local fault`` against a server that runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from google.api_core import exceptions
from typer.testing import CliRunner, Result

from localgcp import lifecycle
from localgcp.home import Home
from localgcp.runner.gcsfuse import storage_client
from vertex_training_cli.cli import app


@pytest.fixture
def running(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[lifecycle.ServerInfo]:
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    yield lifecycle.start(home, print)
    lifecycle.stop(home)


def vt(*words: str, expect: int = 0) -> Result:
    result = CliRunner().invoke(app, ["local", "fault", *words])
    assert result.exit_code == expect, result.output
    return result


def test_faults_are_added_shown_met_and_cleared(home: Home, running: lifecycle.ServerInfo) -> None:
    client = storage_client(f"http://127.0.0.1:{running.storage_port}")
    bucket = client.create_bucket("control")
    added = vt("add", "storage", "error", "--code", "404", "--method", "objects.insert").stdout
    held = vt("add", "storage", "hold", "--match", "held").stdout.strip()
    with pytest.raises(exceptions.NotFound):  # in force as soon as the command is done
        bucket.blob("a").upload_from_string(b"", retry=None)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(bucket.blob("held").upload_from_string, b"")
        assert vt("wait", held).stdout == "objects.insert control/held\n"
        shown = vt("list").stdout
        assert "storage error --method objects.insert --code 404" in shown
        assert "1 of 1" in shown
        assert "objects.insert control/held" in shown
        assert "released objects.insert control/held" in vt("release", held).stderr
        writing.result(60)
    text = vt("list", "--json").stdout
    assert text.startswith('[\n  {\n    "')
    rows = json.loads(text)
    assert [(row["id"], row["kind"], row["spent"]) for row in rows] == [
        (int(added), "error", True), (int(held), "hold", True),
    ]  # fmt: skip
    assert "2 cleared" in vt("clear").stderr
    bucket.blob("a").upload_from_string(b"", retry=None)


def test_faults_can_be_added_before_the_cloud_is_started(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    assert vt("list").stderr == "vt: no faults\n"
    assert vt("add", "jobs", "drop", "--match", "[/train]").stdout == "1\n"
    assert "jobs drop --match [/train]" in vt("list").stdout
