"""What images need and is asked for before one is built: an index, a repository, files to read."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from localgcp.containers.requests import REPOSITORY
from localgcp.home import Home
from localgcp.inventory.store import BUCKET, Store
from tests.unit.infra.stacks import planned
from vertex_training_cli.local import image_form


@pytest.mark.parametrize(
    ("ended", "reached"),
    [
        (0, True),
        (2, False),
        (OSError("no such program"), False),
        (subprocess.TimeoutExpired("uv", 15), False),
    ],
)
def test_the_index_is_asked_once_and_within_seconds(
    monkeypatch: pytest.MonkeyPatch, ended: int | Exception, reached: bool
) -> None:
    ran: list[Any] = []

    def run(command: list[str], **options: Any) -> Any:
        ran.append((command, options))
        if isinstance(ended, Exception):
            raise ended
        return SimpleNamespace(returncode=ended)

    monkeypatch.setattr(image_form, "uv", lambda: "/bin/uv")
    monkeypatch.setattr(image_form, "installer_environment", lambda: {"PATH": "/bin"})
    monkeypatch.setattr(subprocess, "run", run)
    assert image_form._reaches_cpu_wheels() is reached
    command = ["/bin/uv", "pip", "compile", "--quiet", "--no-deps", "--torch-backend", "cpu", "-"]
    env = {
        "PATH": "/bin",
        "UV_HTTP_TIMEOUT": "5",
        "UV_HTTP_CONNECT_TIMEOUT": "5",
        "UV_HTTP_RETRIES": "0",
    }
    options = {"env": env, "capture_output": True, "timeout": 15, "check": False}
    assert ran == [(command, {"input": b"torch", **options})]


@pytest.mark.parametrize(
    ("resources", "has"),
    [
        ([], False),
        ([(REPOSITORY, "acme-ml-prod", "training-prod")], True),
        ([(REPOSITORY, "acme-ml-dev", "training-prod")], False),
        ([(REPOSITORY, "acme-ml-prod", "training-dev")], False),
        ([(BUCKET, "acme-ml-prod", "training-prod")], False),
    ],
)  # fmt: skip
def test_the_repository_of_a_stack_is_that_of_its_project_and_name(
    home: Home, resources: list[tuple[str, str, str]], has: bool
) -> None:
    store = Store(home.database)
    for number, (type_, project, name) in enumerate(resources):
        store.put(type_, str(number), project, {"repositoryId": name}, {})
    assert image_form._has_repository(home, planned().settings) is has
