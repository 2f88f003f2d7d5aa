"""Runs `pulumi` as if it had taken our place: same terminal, same signals, its exit code.

It must end in its own time: after the first interrupt it saves the state and removes its lock, and
a second one ends it at once.
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
    """The exit code, 128 + N if signal N ended it."""
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
    """Are we what the controlling terminal talks to?"""
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
