"""Tests that ports of ``pulumi``, its plugins and its program are private in the local shell."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest
from pulumi import automation

from localgcp.home import Home
from localgcp.lifecycle import install_tools

ROOT: Final = Path(__file__).resolve().parents[2]
PROJECT: Final = (
    f"name: scratch\nruntime: {{name: python, options: {{virtualenv: {ROOT}/.venv}}}}\n"
)
PROGRAM: Final = """\
import os, socket, time
host, port = os.environ["VERTEX_EMULATOR_HOST"].split(":")
with socket.create_connection((host, int(port))) as cloud:
    cloud.sendall(b"from the program")
    print("the cloud answered:", cloud.recv(100).decode(), flush=True)
time.sleep(600)
"""

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has namespaces"),
]


@pytest.fixture
def cloud() -> Iterator[int]:
    """Return the port of a server outside, which answers each connection."""

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.sendall(connection.recv(100).upper())

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def environment(tmp_path: Path, cloud: int) -> dict[str, str]:
    """Return the environment of the local shell, with a project in ``tmp_path``/project."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "Pulumi.yaml").write_text(PROJECT)
    (project / "__main__.py").write_text(PROGRAM)
    home = Home(tmp_path / "home", project)
    home.create()
    install_tools(home)
    return {
        "HOME": str(tmp_path),
        **home.environment(None),
        "PATH": os.pathsep.join([str(home.bin), f"{ROOT}/.venv/bin", "/usr/bin", "/bin"]),
        "VERTEX_EMULATOR_HOST": f"127.0.0.1:{cloud}",
    }


def start(project: Path, environment: dict[str, str]) -> tuple[subprocess.Popen[str], str]:
    """Start a preview whose program never ends; return what it printed about the cloud."""
    pulumi = ["pulumi", "-C", str(project), "--non-interactive", "--color=never"]
    subprocess.run([*pulumi, "stack", "init", "x"], env=environment, check=True)
    process = subprocess.Popen(
        [*pulumi, "preview", "-s", "x"], env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if "the cloud answered" in line:
            return process, line
    raise AssertionError(process.wait())


def listening(process: subprocess.Popen[str]) -> set[int]:
    """Return the ports of the engine and its child processes, in any network."""
    engine, found = psutil.Process(process.pid), set[int]()
    for one in (engine, *engine.children(recursive=True)):
        folder = Path("/proc", str(one.pid))
        held = {os.readlink(file) for file in (folder / "fd").iterdir()}
        for table in ("tcp", "tcp6"):
            for row in (folder / "net" / table).read_text().splitlines()[1:]:
                _, address, _, state, *rest = row.split()
                if state == "0A" and f"socket:[{rest[5]}]" in held:
                    found.add(int(address.rpartition(":")[2], 16))
    return found


def is_reached(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def test_engine_ports_are_private_and_the_engine_reaches_the_local_cloud(
    tmp_path: Path, environment: dict[str, str], cloud: int
) -> None:
    process, line = start(tmp_path / "project", environment)
    try:
        assert "FROM THE PROGRAM" in line
        ports = listening(process) - {cloud}
        assert len(ports) >= 2  # engine and language host at least
        assert [port for port in ports if is_reached(port)] == []
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_port_forwarding_ends_with_the_engine(tmp_path: Path, environment: dict[str, str]) -> None:
    process, _ = start(tmp_path / "project", environment)

    def left() -> list[psutil.Process]:
        named = (each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"])
        return [each for each in named if str(tmp_path) in " ".join(each.info["cmdline"])]

    assert len(left()) >= 2
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)  # and nothing holds its output open
    deadline = time.monotonic() + 30
    while left() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left() == []


def test_program_may_use_the_network_of_the_host_on_request(
    tmp_path: Path, environment: dict[str, str], cloud: int
) -> None:
    process, _ = start(tmp_path / "project", {**environment, "VT_LOCAL_NETWORK": "host"})
    try:
        assert any(is_reached(port) for port in listening(process) - {cloud})
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_caller_outside_receives_events_of_the_isolated_program(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    project = tmp_path / "project"
    (project / "__main__.py").write_text("import os\nprint(os.readlink('/proc/self/ns/net'))\n")
    stack = automation.create_or_select_stack("x", work_dir=str(project))
    events = list[automation.EngineEvent]()
    done = stack.preview(on_event=events.append)
    assert os.readlink("/proc/self/ns/net") not in done.stdout
    assert "net:[" in done.stdout
    assert any(each.summary_event for each in events)
