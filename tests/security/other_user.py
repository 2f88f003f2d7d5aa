"""A process of another user of this machine, which forwards connections as that user."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

#: An id that no system gives away by itself.
UID: Final = 54321

needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0,
    reason="only root can start a process of another user",
)

#: Becomes the user and prints a port. What connects to it goes to the target, from a socket of that
#: user. Everything is loaded before: the user may not read where Python lies.
_RELAY: Final = """
import os, socket, sys, threading
uid, target = int(sys.argv[1]), int(sys.argv[2])
os.setgroups([]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen(64)
print(listener.getsockname()[1], flush=True)
def copy(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)  # the other direction goes on: an answer may come first
    except OSError:
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
while True:
    inward, _ = listener.accept()
    outward = socket.socket()
    outward.connect(("127.0.0.1", target))
    for pair in ((inward, outward), (outward, inward)):
        threading.Thread(target=copy, args=pair, daemon=True).start()
"""

#: Becomes the user, sends standard input from a socket of its own, and ends it in a manner.
_SENDER: Final = """
import os, socket, struct, sys, time
uid, target, family, source, manner = sys.argv[1:]
data = sys.stdin.buffer.read()
os.setgroups([]); os.setresgid(*[int(uid)] * 3); os.setresuid(*[int(uid)] * 3)
connection = socket.socket(getattr(socket, family))
if source:
    connection.bind((source, 0))
host = "127.0.0.1" if family == "AF_INET" else "::ffff:127.0.0.1"
connection.connect((host, int(target)))
if manner == "slowly":
    for index in range(0, len(data), 7):
        connection.sendall(data[index:index + 7])
else:
    connection.sendall(data)
if manner == "reset":
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
elif manner == "half":
    connection.shutdown(socket.SHUT_WR)
if manner not in ("reset", "hang up"):
    connection.settimeout(0.2)
    try:
        while connection.recv(65536):
            pass
    except OSError:
        pass
connection.close()
"""


@contextmanager
def relay(target: int) -> Iterator[int]:
    """Yield a port that leads to ``target`` through a process of the other user."""
    command = [sys.executable, "-I", "-S", "-c", _RELAY, str(UID), str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


def send(target: int, data: bytes, family: str, source: str, manner: str) -> None:
    """Send bytes as the other user, from an address; then wait, hang up, reset or half-close."""
    command = [sys.executable, "-I", "-S", "-c", _SENDER, str(UID), str(target), family, source]
    subprocess.run([*command, manner], input=data, check=True, timeout=60)
