"""The registry's process: where it listens, when it answers, and what is left of it."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localgcp.containers import front, registry
from localgcp.containers.registry import Registry
from localgcp.errors import LocalCloudError, RefusedRequestError

#: Answers 200 at the socket, to whoever opens it, and notes that in the log.
PROGRAM = f"""#!{sys.executable} -SE
import socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
listener.bind("registry.sock")
listener.listen()
while True:
    client, _ = listener.accept()
    print(client.recv(4096).decode().splitlines()[0], flush=True)
    client.sendall(b"HTTP/1.1 STATUS OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
    client.close()
"""


@pytest.fixture
def made(tmp_path: Path) -> Registry:
    """A registry in a folder whose path is too long for a socket."""
    program = tmp_path / "registry-program"
    program.write_text(PROGRAM.replace("STATUS", "200"))
    program.chmod(0o755)
    folder = tmp_path.joinpath(*["a" * 50] * 2, "registry")
    return Registry(str(program), folder, tmp_path / "registry.log", tmp_path / "notes")


def test_registry_answers_once_started_and_leaves_nothing(
    made: Registry,
) -> None:
    made.folder.mkdir(parents=True)
    (made.folder / "registry.sock").touch()  # of one that was killed
    made.start()
    try:
        assert (made.alive(), made.answers()) == (True, True)
        assert stat.S_IMODE((made.folder / "registry.sock").stat().st_mode) & 0o077 == 0
        assert stat.S_IMODE(made.log.stat().st_mode) == 0o600
        [note] = made.notes.iterdir()
        noted = json.loads(note.read_text())
        assert (note.name, noted["role"]) == (f"{noted['pid']}.json", "registry")
        assert os.getsid(noted["pid"]) == noted["pid"]
    finally:
        made.stop()
    assert (made.alive(), made.answers()) == (False, False)
    assert [*made.notes.iterdir()] == []
    assert [each.name for each in made.folder.iterdir()] == ["config.yml"]
    assert made.log.read_text().splitlines()[-1] == "GET /v2/ HTTP/1.1"
    made.stop()


def test_registry_that_ends_at_once_is_reported(tmp_path: Path) -> None:
    program = tmp_path / "registry-program"
    program.write_text("#!/bin/sh\necho $1 $2 $PATH $OTEL_TRACES_EXPORTER\nexit 1\n")
    program.chmod(0o755)
    folder, log = tmp_path / "registry", tmp_path / "registry.log"
    made = Registry(str(program), folder, log, tmp_path / "notes")
    with pytest.raises(LocalCloudError) as failed:
        made.start()
    assert str(failed.value) == f"the container registry did not start. Hint: see {log}."
    assert log.read_text() == f"serve config.yml {os.defpath} none\n"
    assert list((tmp_path / "notes").iterdir()) == []
    assert made.alive() is False


@pytest.mark.parametrize(("free", "full"), [(16 * 2**20 - 1, True), (16 * 2**20, False)])
def test_a_disk_without_space_for_a_layer_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, full: bool
) -> None:
    made = Registry("/none", tmp_path, tmp_path / "log", tmp_path / "notes")
    assert made.is_full() is False

    def usage(path: Path) -> Any:
        assert path == tmp_path / "data"
        return SimpleNamespace(free=free)

    monkeypatch.setattr(registry.shutil, "disk_usage", usage)
    assert made.is_full() is full


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/", 404),
        ("/v2/local-a/training/manifests/v1", 404),
        ("/v2/acme-ml-dev/training/titanic/manifests/v1", 403),
        ("/v2/local-a/../../etc/manifests/v1", 400),
        ("http://[x/v2/", 400),
        (f"/v2/local-a/training/titanic/manifests/{'a' * 129}", 400),
        ("/v2/local-a/training/x/blobs/uploads/?mount=sha256:1&from=acme/training/x", 403),
    ],
)
def test_addresses_of_others_are_refused(target: str, status: int) -> None:
    with pytest.raises(RefusedRequestError) as refused:
        front.parse("POST", target)
    assert refused.value.status == status
