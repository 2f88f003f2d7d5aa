"""Start and stop the local cloud's server, and clean up after a crash."""

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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from localgcp.errors import LocalCloudError
from localgcp.gcp.schema import MEASURED, version
from localgcp.home import PRIVATE_UMASK, Home, make_private, open_private, path_without
from localgcp.home.environment import server_environment
from localgcp.home.servers import ServerInfo, responds
from localgcp.storage.requests import HEALTHCHECK
from localgcp.system import processes
from localgcp.system.processes import start_time, wait_until
from localgcp.system.root_directory import make_folder

_START_SECONDS: Final = 60.0
_ERROR: Final = "error: "

Report = Callable[[str], None]


def running(home: Home) -> ServerInfo | None:
    """Return the ready server of this home, or None."""
    return ServerInfo.read(home.server_file) if _locked(home) else None


def healthy(info: ServerInfo) -> bool:
    """Return whether both emulators answer at their ports."""
    try:
        socket.create_connection(("127.0.0.1", info.vertex_port), timeout=2).close()
    except OSError:
        return False
    storage = http.client.HTTPConnection("127.0.0.1", info.storage_port, timeout=2)
    return responds(storage, HEALTHCHECK)


def start(home: Home, report: Report) -> ServerInfo:
    """Start the server unless it runs, and return the server. Raises LocalCloudError."""
    home.create()
    with _starting(home):
        install_tools(home)
        if _locked(home):
            info = _wait_ready(home)
            if info and healthy(info):
                _report_warnings(info, report)
                return info
            report("the server does not answer; restarting the server")
            _end_server(home)
        if before := ServerInfo.read(home.server_file):
            report(f"the server (process {before.pid}) was killed; starting a new one")
        for child in processes.live_children(home.children):
            report(f"ending process {child.pid} ({child.role}) of the killed server")
        make_private(home.root, keep=(home.containers,))
        info = _spawn(home)
    report(f"local cloud started: vertex {info.vertex_port}, storage {info.storage_port}")
    _report_warnings(info, report)
    return info


def stop(home: Home) -> bool:
    """Stop the server and the child processes; return whether a process was running."""
    if not home.is_ours():  # do not write to a missing folder or a folder of another program
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
    """End the programs of a killed server's jobs, models and queries."""
    for folder in (home.jobs, home.batch, home.serving, home.bigquery):
        processes.end_below(folder)


def check_removable(home: Home) -> bool:
    """Return whether the home exists. Raises LocalCloudError for a folder that is not a home."""
    if not home.root.exists():
        return False
    if not home.is_ours():
        raise LocalCloudError(
            f"{home.root} was not created by `vt local`; no file was removed.",
            "check VT_LOCAL_HOME.",
        )
    return True


def remove(home: Home) -> bool:
    """Delete a stopped local cloud; return whether its home existed. Raises LocalCloudError."""
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

    def ready() -> ServerInfo | None:
        info = ServerInfo.read(home.server_file)
        return info if info and info.pid == process.pid else None

    if not wait_until(lambda: ready() or process.poll() is not None, _START_SECONDS):
        process.kill()
        text = f"the local cloud was not ready after {_START_SECONDS:.0f} s."
        raise LocalCloudError(text, f"see {home.server_log}.")
    if info := ready():
        return info
    with home.server_log.open("rb") as log:
        log.seek(begin)
        lines = log.read().decode(errors="replace").splitlines()
    errors = [line.removeprefix(_ERROR) for line in lines if line.startswith(_ERROR)]
    text = errors[-1] if errors else f"see {home.server_log}"
    raise LocalCloudError(f"the local cloud did not start: {text}")


def _end_server(home: Home) -> None:
    info, hint = _wait_ready(home), f"end the process that has {home.server_lock} open."
    if info is None:
        if _locked(home):
            raise LocalCloudError("the server holds its lock but does not become ready.", hint)
        return
    if not processes.runs(info.pid, "localgcp.server", str(home.root)):
        # A killed process has no command line, but holds the lock until the process ends.
        if wait_until(lambda: not _locked(home), 5.0):
            return
        text = f"{home.server_file} contains process id {info.pid}, which is not the server's."
        raise LocalCloudError(text, hint)
    server = processes.ChildProcess(info.pid, processes.start_time(info.pid) or "gone", "server")
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(info.pid, number)
        except ProcessLookupError:
            return
        if wait_until(lambda: not server.is_alive(), 30.0):
            return


def install_tools(home: Home) -> None:
    """Write the scripts that replace pulumi, its gcp plugin and gcloud in the local shell."""
    python = shlex.quote(sys.executable)
    shim = shlex.quote(str(Path(__file__).with_name("access") / "pulumi_shim.py"))
    parent = shlex.quote(str(Path(__file__).resolve().parents[1]))
    # The engine writes state, plans and plugins to the home.
    private = f"umask {PRIVATE_UMASK:03o}\n"
    # The shim needs only the standard library: -S and -I make its start faster.
    _write(home.bin / "pulumi", f'{private}exec {python} -S -I {shim} "$@"')
    plugin = f"{private}export PYTHONPATH={parent}${{PYTHONPATH:+:$PYTHONPATH}}\n"
    plugin += f'exec {python} -m localgcp.gcp "$@"'
    plugins = home.pulumi_home / "plugins"
    for folder in (home.bin, *(plugins / f"resource-gcp-v{v}" for v in {version(), MEASURED})):
        _write(folder / "pulumi-resource-gcp", plugin)
    gcloud = shutil.which("gcloud", path=path_without(home.bin))
    if gcloud is None:
        (home.bin / "gcloud").unlink(missing_ok=True)
        return
    folder = shlex.quote(str(home.cloud_sdk / "home"))
    script = f'unset DOCKER_CONFIG KUBECONFIG\nHOME={folder} exec {shlex.quote(gcloud)} "$@"'
    _write(home.bin / "gcloud", script)


def _write(path: Path, body: str) -> None:
    text = f"#!/bin/sh\n# Written by `vt local`.\n{body}\n"
    if path.exists() and path.read_text() == text:
        return
    make_folder(path.parent)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text)
    partial.chmod(0o700)
    partial.replace(path)


def end_orphaned_plugins(home: Home) -> list[int]:
    """End the plugins of this home whose engine ended, and return their process ids."""
    import psutil

    by_pid: dict[int, tuple[psutil.Process, int, str]] = {}
    for process in psutil.process_iter():
        try:
            if process.environ().get("VT_LOCAL_HOME") == str(home.root):
                by_pid[process.pid] = process, process.ppid(), "\0".join(process.cmdline())
        except (psutil.Error, OSError):
            continue  # the process ended, or belongs to another user

    def is_orphaned(pid: int) -> bool:
        _, parent, command = by_pid[pid]
        names = ("pulumi.dynamic", "pulumi-resource-", "localgcp.gcp", "language_host")
        is_plugin = any(name in command for name in names)
        return is_plugin and (parent not in by_pid or is_orphaned(parent))

    plugins = [by_pid[pid][0] for pid in sorted(by_pid) if is_orphaned(pid)]
    for number in (signal.SIGTERM, signal.SIGKILL):
        for plugin in plugins:
            try:
                plugin.send_signal(number)
            except psutil.NoSuchProcess:
                continue
        wait_until(lambda: not any(start_time(plugin.pid) for plugin in plugins), 3.0)
    return [plugin.pid for plugin in plugins]
