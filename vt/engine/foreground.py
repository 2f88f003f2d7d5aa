"""Runs a command in place of this process: same terminal, same signals, same exit code.

``pulumi`` needs time to end: after the first interrupt it saves the state and removes its lock. A
second interrupt ends it at once.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Final

_FORWARDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(command: list[str], cwd: Path, env: Mapping[str, str]) -> int:
    """Run ``command`` and return its exit code, 128 + N if signal N ended it."""
    at_terminal = _in_foreground()
    # At a terminal Ctrl-C reaches it by itself, and it may ask questions there. Elsewhere it gets
    # a process group of its own: a signal to us or to our group then reaches it once, through us.
    group = None if at_terminal else 0
    early: list[int] = []
    process: subprocess.Popen[bytes] | None = None

    def forward(number: int, _frame: FrameType | None) -> None:
        if process is None:
            early.append(number)
        elif not (at_terminal and number == signal.SIGINT):
            process.send_signal(number)

    # Before it is started: a signal that comes in between is for it as well.
    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        with subprocess.Popen(command, cwd=cwd, env=dict(env), process_group=group) as process:
            for number in early:
                process.send_signal(number)
            code = process.wait()
            return code if code >= 0 else 128 - code  # as shells report a signal
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    """Whether this process is in the foreground of its terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
