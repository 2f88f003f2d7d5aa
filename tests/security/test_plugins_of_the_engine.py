"""Tests that plugins of ``pulumi`` answer only processes of their own user and of root."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import grpc
import pytest

from tests.security.other_user import needs_root, relay

ROOT: Final = Path(__file__).resolve().parents[2]
VENV: Final = ROOT / ".venv"
#: Nobody listens there: the plugins only write logs to their engine.
_ENGINE: Final = "127.0.0.1:1"

#: Plugin -> what starts it, and a method that needs nothing before.
PLUGINS: Final = {
    "dynamic provider": (
        [VENV / "bin" / "pulumi-resource-pulumi-python", _ENGINE],
        "/pulumirpc.ResourceProvider/GetPluginInfo",
    ),
    "components": (
        [VENV / "bin" / "pulumi-resource-vertex-training", _ENGINE],
        "/pulumirpc.ResourceProvider/GetSchema",
    ),
    "language host": (
        [VENV / "bin" / "pulumi-language-python", _ENGINE],
        "/pulumirpc.LanguageRuntime/GetPluginInfo",
    ),
    "policies": (
        [VENV / "policy" / "bin" / "python", "-u", "-m", "pulumi.policy", _ENGINE, "policy"],
        "/pulumirpc.Analyzer/GetAnalyzerInfo",
    ),
}


@contextmanager
def started(command: list[Any]) -> Iterator[int]:
    """Yield the port of a running plugin."""
    environment = {**os.environ, "PULUMI_RUNTIME_VIRTUALENV": str(VENV)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            os.killpg(process.pid, 9)


def call(port: int, method: str) -> bytes:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        asked: Any = channel.unary_unary(method)
        return asked(b"", timeout=60)


@needs_root
@pytest.mark.parametrize(("command", "method"), PLUGINS.values(), ids=PLUGINS)
def test_plugin_refuses_other_users_and_answers_its_own(command: list[Any], method: str) -> None:
    if Path(command[0]).name == "pulumi-language-python" and not is_script(command[0]):
        pytest.skip("the official language host is Pulumi's to guard")
    with started(command) as port:
        assert call(port, method)
        with relay(port) as foreign, pytest.raises(grpc.RpcError) as refused:
            call(foreign, method)
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED  # pyright: ignore
    assert "another user" in refused.value.details()  # pyright: ignore


def is_script(program: Path) -> bool:
    with program.open("rb") as opened:
        return opened.read(2) == b"#!"


def test_all_plugins_of_the_engine_are_installed() -> None:
    assert [name for name, (command, _) in PLUGINS.items() if not shutil.which(command[0])] == []
