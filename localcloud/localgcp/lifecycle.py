"""Starts and stops the local cloud's server, and cleans up after a crash.

A server runs if it holds its lock; no file that may be stale decides. A start or stop holds
another lock, so two commands at once give one server.
"""

from __future__ import annotations

import fcntl
import http.client
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from localgcp.errors import LocalCloudError
from localgcp.gcp.schema import MEASURED, version
from localgcp.home import PRIVATE_UMASK, Home, make_private, open_private, path_without
from localgcp.home.environment import server_environment
from localgcp.home.servers import ServerInfo
from localgcp.storage.emulator import is_healthy
from localgcp.system import processes
from localgcp.system.processes import start_time, wait_until
from localgcp.system.root_directory import make_folder

if TYPE_CHECKING:
    import psutil


_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 30.0
_DYING_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.03
_ERROR: Final = "error: "

Report = Callable[[str], None]


def running(home: Home) -> ServerInfo | None:
    """Return the server of this home if it is ready, else None."""
    return ServerInfo.read(home.server_file) if _locked(home) else None


def healthy(info: ServerInfo) -> bool:
    """Return whether both emulators answer at their ports."""
    try:
        socket.create_connection(("127.0.0.1", info.vertex_port), timeout=2).close()
    except OSError:
        return False
    return is_healthy(http.client.HTTPConnection("127.0.0.1", info.storage_port, timeout=2))


def start(home: Home, report: Report) -> ServerInfo:
    """Return the running server; start it if necessary. Raises LocalCloudError if the
    start fails.
    """
    home.create()
    with _starting(home):
        install_tools(home)
        if _locked(home):
            info = _wait_ready(home)
            if info and healthy(info):
                _report_warnings(info, report)
                return info
            report("the server does not answer; restarting it")
            _end_server(home)
        _report_orphaned_processes(home, report)
        make_private(home.root, keep=(home.containers,))
        info = _spawn(home)
    report(f"local cloud started: vertex {info.vertex_port}, storage {info.storage_port}")
    _report_warnings(info, report)
    return info


def stop(home: Home) -> bool:
    """Stop the server and its child processes. Return False if none was running. Repeatable."""
    if not home.is_ours():  # not made yet, or another's folder: no file may be left in it
        return False
    with _starting(home):
        ran = _locked(home)
        if ran:
            _end_server(home)
        children = processes.end_orphaned_children(home.children)
        end_work(home)
        plugins = end_orphaned_plugins(home)
        home.server_file.unlink(missing_ok=True)
    return ran or bool(children) or bool(plugins)


def end_work(home: Home) -> None:
    """End the programs of jobs, models and queries that a killed server left running."""
    for folder in (home.jobs, home.batch, home.serving, home.bigquery):
        processes.end_below(folder)


def check_removable(home: Home) -> bool:
    """Return whether the home has files that ``remove`` may delete.

    Raises LocalCloudError if the folder is not ours.
    """
    if not home.root.exists():
        return False
    if not home.is_ours():
        raise LocalCloudError(
            f"{home.root} was not created by `vt local`; no file was removed.",
            "check VT_LOCAL_HOME.",
        )
    return True


def remove(home: Home) -> bool:
    """Delete the files of a stopped local cloud. Returns and raises like ``check_removable``."""
    if not check_removable(home):
        return False
    shutil.rmtree(home.root)
    return True


def _locked(home: Home) -> bool:
    if not home.server_lock.exists():
        return False
    with open_private(home.server_lock, "r") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def _starting(home: Home) -> Iterator[None]:
    with open_private(home.start_lock, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _wait_ready(home: Home) -> ServerInfo | None:
    wait_until(lambda: ServerInfo.read(home.server_file) or not _locked(home), _START_SECONDS)
    return running(home)


def _report_warnings(info: ServerInfo, report: Report) -> None:
    for warning in info.warnings:
        report(f"warning: {warning} (docs/local-stack.md, Who gets in)")


def _report_orphaned_processes(home: Home, report: Report) -> None:
    if before := ServerInfo.read(home.server_file):
        report(f"the server (process {before.pid}) was killed; starting a new one")
    for child in processes.live_children(home.children):
        report(f"ending process {child.pid} ({child.role}) of the killed server")


def _spawn(home: Home) -> ServerInfo:
    command = [sys.executable, "-m", "localgcp.server"]
    command += ["--home", str(home.root), "--repo", str(home.repo)]
    with open_private(home.server_log, "ab") as log:
        begin = log.tell()
        process = subprocess.Popen(
            command,
            cwd=home.root,
            env=server_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=PRIVATE_UMASK,
        )
    deadline = time.monotonic() + _START_SECONDS
    while True:
        info = ServerInfo.read(home.server_file)
        if info and info.pid == process.pid:
            return info
        if process.poll() is not None:
            raise LocalCloudError(f"the local cloud did not start: {_startup_error(home, begin)}")
        if time.monotonic() > deadline:
            process.kill()
            raise LocalCloudError(
                f"the local cloud was not ready after {_START_SECONDS:.0f} s.",
                f"see {home.server_log}.",
            )
        time.sleep(_POLL_SECONDS)


def _startup_error(home: Home, begin: int) -> str:
    with home.server_log.open("rb") as log:
        log.seek(begin)
        lines = log.read().decode(errors="replace").splitlines()
    errors = [line.removeprefix(_ERROR) for line in lines if line.startswith(_ERROR)]
    return errors[-1] if errors else f"see {home.server_log}"


def _end_server(home: Home) -> None:
    info = _wait_ready(home)
    if info is None:
        if _locked(home):
            raise LocalCloudError(
                "the server holds its lock but does not become ready.",
                f"end the process that has {home.server_lock} open.",
            )
        return
    if not processes.runs(info.pid, "localgcp.server", str(home.root)):
        # A killed one keeps its lock until it is gone, and has no command line any more.
        if wait_until(lambda: not _locked(home), _DYING_SECONDS):
            return
        raise LocalCloudError(
            f"{home.server_file} contains process id {info.pid}, which is not the server's.",
            f"end the process that has {home.server_lock} open.",
        )
    server = processes.ChildProcess(info.pid, processes.start_time(info.pid) or "gone", "server")
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(info.pid, number)
        except ProcessLookupError:
            return
        if wait_until(lambda: not server.is_alive(), _STOP_SECONDS):
            return


_PACKAGE_PARENT: Final = Path(__file__).resolve().parents[1]


def install_tools(home: Home) -> None:
    """Write the shims of pulumi and other programs, unless they are current."""
    python = shlex.quote(sys.executable)
    shim = shlex.quote(str(Path(__file__).with_name("access") / "pulumi_shim.py"))
    parent = shlex.quote(str(_PACKAGE_PARENT))
    # -S and -I: the shim is standard library only, and starts in a few hundredths of a second.
    # The engine writes state, plans and plugins below the home.
    private = f"umask {PRIVATE_UMASK:03o}\n"
    _write(home.bin / "pulumi", f'{private}exec {python} -S -I {shim} "$@"')
    plugins = home.pulumi_home / "plugins"
    versions = sorted({version(), MEASURED})
    for folder in (
        home.bin,
        *(plugins / f"resource-gcp-v{plugin_version}" for plugin_version in versions),
    ):
        _write(
            folder / "pulumi-resource-gcp",
            f"{private}export PYTHONPATH={parent}${{PYTHONPATH:+:$PYTHONPATH}}\n"
            f'exec {python} -m localgcp.gcp "$@"',
        )
    gcloud = shutil.which("gcloud", path=path_without(home.bin))
    if gcloud is None:
        (home.bin / "gcloud").unlink(missing_ok=True)
        return
    own = shlex.quote(str(home.cloud_sdk / "home"))
    _write(
        home.bin / "gcloud",
        f'unset DOCKER_CONFIG KUBECONFIG\nHOME={own} exec {shlex.quote(gcloud)} "$@"',
    )


def _write(path: Path, body: str) -> None:
    text = f"#!/bin/sh\n# Written by `vt local`.\n{body}\n"
    if path.exists() and path.read_text() == text:
        return
    make_folder(path.parent)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text)
    partial.chmod(0o700)
    partial.replace(path)


_PLUGINS: Final = (
    "pulumi.dynamic",
    "pulumi-resource-",
    "localgcp.gcp",
    "language_host",
)
_GRACE_SECONDS: Final = 3.0


def end_orphaned_plugins(home: Home) -> list[int]:
    """End the orphaned plugins of this home and return their process ids."""
    import psutil

    plugins = _orphaned_plugins(home)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for plugin in plugins:
            try:
                plugin.send_signal(number)
            except psutil.NoSuchProcess:
                continue
        wait_until(lambda: not any(start_time(orphan.pid) for orphan in plugins), _GRACE_SECONDS)
    return [plugin.pid for plugin in plugins]


def _orphaned_plugins(home: Home) -> list[psutil.Process]:
    processes = _processes_of(home)

    def is_orphaned(pid: int) -> bool:
        _, parent, command = processes[pid]
        is_plugin = any(plugin in command for plugin in _PLUGINS)
        return is_plugin and (parent not in processes or is_orphaned(parent))

    return [processes[pid][0] for pid in sorted(processes) if is_orphaned(pid)]


def _processes_of(home: Home) -> dict[int, tuple[psutil.Process, int, str]]:
    import psutil

    by_pid: dict[int, tuple[psutil.Process, int, str]] = {}
    for process in psutil.process_iter():
        try:
            if process.environ().get("VT_LOCAL_HOME") == str(home.root):
                by_pid[process.pid] = process, process.ppid(), "\0".join(process.cmdline())
        except (psutil.Error, OSError):
            continue  # it ended meanwhile, or belongs to another user
    return by_pid
