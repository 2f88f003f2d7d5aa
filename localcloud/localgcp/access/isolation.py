"""``isolation.py FD PORTS PROGRAM ARGUMENT…``: run PROGRAM without network except PORTS (Linux).

The function ``start`` runs this file. PROGRAM and its child processes get namespaces of their own:

===========  =====================================================================================
network      127.0.0.1, where PORTS forward to the same ports of this machine (``engine_network``)
users        the same user without capabilities, who cannot enter the machine's network
processes    all end with PROGRAM; processes of this machine are not visible
mounts       ``/run`` is empty, and Unix sockets of this machine's servers are covered
===========  =====================================================================================

Files are those of this machine: programs that a file can start later (cron) are not restricted. The
exit code is PROGRAM's, or 128 + N after signal N. Only the standard library is imported.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

if not __package__:  # This file runs as a script.
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from localgcp.access import engine_network, network
from localgcp.system import namespaces
from localgcp.system.namespaces import call, mount

#: Mount flags nosuid, nodev and noexec.
_MS_HARMLESS: Final = 0x2 | 0x4 | 0x8
#: Constants of include/uapi/linux/prctl.h.
_PR_SET_PDEATHSIG: Final = 1
_PR_CAPBSET_DROP: Final = 24
#: Signals that Python or this file ignores. PROGRAM has the default actions.
_RESTORED: Final = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM)
_NAMESPACES: Final = (
    namespaces.NEW_MOUNTS | namespaces.NEW_IPC | namespaces.NEW_USER | namespaces.NEW_PROCESSES
)


def start(
    command: Sequence[str], env: Mapping[str, str], ports: Collection[int], output: int
) -> subprocess.Popen[bytes]:
    """Start ``command`` (a path and arguments) with its output in the file ``output``.

    The process leads a session. SIGTERM to its group reaches the command and its child processes;
    SIGKILL ends all of them. Raises NoPrivateNetworkError if this system has no such namespaces.
    """
    listed = ",".join(map(str, ports))
    process, control = network.launch(
        Path(__file__), [listed, *command], env=dict(env), stdout=output
    )
    control.close()
    return process


def main() -> int:
    """Run PROGRAM and return its exit code; return 1 if the system has no namespaces."""
    control, ports = socket.socket(fileno=int(sys.argv[1])), sys.argv[2].split(",")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # Only PROGRAM handles SIGTERM.
    try:
        _isolate([int(port) for port in ports if port])
        first = os.fork()
        if first == 0:
            _prepare_first()
            control.sendall(b"y")
            control.close()
            os._exit(_run(sys.argv[3:]))
    except (OSError, AttributeError) as error:  # the system or a container forbids the call
        control.sendall(f"n{error}".encode())
        return 1
    control.close()
    return _exit_code(os.waitpid(first, 0)[1])


def _isolate(ports: Collection[int]) -> None:
    sockets = _sockets()
    if not engine_network.enter(ports):
        raise OSError("cannot create a network namespace")
    user, group = os.geteuid(), os.getegid()
    call("unshare", _NAMESPACES)
    namespaces.keep_user(user, group)
    call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL)
    mount(None, "/", namespaces.RECURSIVE | namespaces.PRIVATE)
    for path in sockets:
        try:
            mount("/dev/null", path, namespaces.BIND)
        except OSError as error:  # the socket was removed, or this user has no access to it
            if error.errno not in (errno.ENOENT, errno.EACCES):
                raise
    for folder in {os.path.realpath(path) for path in ("/run", "/var/run")}:
        if os.path.isdir(folder):
            _empty(folder)
    try:
        os.chdir(os.getcwd())  # the current folder may be covered by the empty folder now
        os.stat(os.environ.get("TMPDIR") or "/tmp")  # contains the caller's files for PROGRAM
    except FileNotFoundError as error:
        raise OSError(f"{error.filename} is in /run, which is empty for the command") from None


def _sockets() -> set[str]:
    """Return the paths of Unix sockets that are mounted, bound, or beside a bound socket."""
    # Only "\n" ends a line. A name may contain other characters at which splitlines() splits.
    mounts = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").split("\n")
    fields = [line.split(" ") for line in mounts if line]
    points = [re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), f[4]) for f in fields]
    table = Path("/proc/net/unix").read_text(errors="surrogateescape").split("\n")[1:]
    bound = [row[7] for line in table if len(row := line.split(None, 7)) > 7]
    folders = {os.path.dirname(path) for path in bound if path.startswith("/")}
    for folder in folders:
        with suppress(OSError):
            points += [os.path.join(folder, name) for name in os.listdir(folder)]
    return {path for path in points if _is_socket(path)}


def _is_socket(path: str) -> bool:
    with suppress(OSError, ValueError):
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    return False


def _empty(folder: str) -> None:
    """Hide a folder's content, except its symbolic links, which NixOS needs to find programs."""
    links = {link.path: os.readlink(link) for link in os.scandir(folder) if link.is_symlink()}
    mount("none", folder, _MS_HARMLESS, "tmpfs")
    for path, target in links.items():
        os.symlink(target, path)


def _prepare_first() -> None:
    """Set up the first process of the namespaces, whose end ends all their processes."""
    call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL)
    with suppress(OSError):  # refused in a container that covers parts of /proc itself
        mount("proc", "/proc", _MS_HARMLESS, "proc")
    number = 0
    with suppress(OSError):  # raised after the last capability of the kernel
        while True:
            call("prctl", _PR_CAPBSET_DROP, number)
            number += 1
    if number == 0:
        raise OSError("cannot drop capabilities")


def _run(command: Sequence[str]) -> int:
    program = os.fork()
    if program == 0:
        for number in _RESTORED:
            signal.signal(number, signal.SIG_DFL)
        os.execv(command[0], list(command))
    while True:
        process, status = os.wait()
        if process == program:
            return _exit_code(status)


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
