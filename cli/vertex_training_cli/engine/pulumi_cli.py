"""The ``pulumi`` command: find it, start it and read its JSON.

At the first interrupt, ``pulumi`` saves the state and removes its lock. A second interrupt ends it
at once. Output to a terminal is unchanged; other output is redacted line by line.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any, Final

from localgcp.access.pulumi_shim import PASSPHRASE_UNDO
from vertex_training.errors import CommandError
from vertex_training_cli.engine.values import LineRedactor, redact

#: Variable with the URL of the state backend.
BACKEND: Final = "PULUMI_BACKEND_URL"
_NO_RESOURCE: Final = "urn:pulumi:none::none::none::none"


def find_pulumi(env: Mapping[str, str]) -> str | None:
    """Return the path of ``pulumi`` on the PATH of ``env`` or beside this Python, else None."""
    path = env.get("PATH", os.defpath) + os.pathsep + str(Path(sys.executable).parent)
    return shutil.which("pulumi", path=path)


@dataclass(frozen=True, slots=True)
class PulumiCli:
    """``pulumi`` in the project ``root``, with the environment ``env``."""

    root: Path
    env: Mapping[str, str]

    def command(self, *arguments: str) -> list[str]:
        """Return the command line with these arguments; raise CommandError without ``pulumi``."""
        executable = find_pulumi(self.env)
        if executable is None:
            raise CommandError("pulumi is not on PATH.", "run `vt setup`.")
        return [executable, *arguments]

    def with_variables(self, **variables: str) -> PulumiCli:
        """Return a copy with more environment variables."""
        return PulumiCli(self.root, {**self.env, **variables})

    def run_in_foreground(self, *arguments: str) -> int:
        """Run ``pulumi`` connected to this terminal and return its exit code."""
        code = run_at_terminal(self.command(*arguments), self.root, self.env)
        has_passphrase = any(name.startswith("PULUMI_CONFIG_PASSPHRASE") for name in self.env)
        if code == 1 and has_passphrase and "--stack" in arguments:
            stack = arguments[arguments.index("--stack") + 1]
            # This process cannot read the engine's message on the terminal. A refresh of no
            # resource fails with the same message.
            probe = ("refresh", "--preview-only", "--target", _NO_RESOURCE, "--stack", stack)
            if hint := hint_for(self.capture(*probe).stderr):
                _write(2, redact(f"vt: {hint}\n").encode())
        return code

    def capture(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``pulumi`` without a terminal. Return its output, with a hint added to stderr."""
        try:
            done = subprocess.run(
                [*self.command(*arguments), "--non-interactive"],
                cwd=self.root, env=dict(self.env), check=False, capture_output=True,
                text=True, encoding="utf-8", errors="replace",
            )  # fmt: skip
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}.", "run `vt setup`") from None
        done.stderr = with_hint(done.stderr)
        return done

    def read_json(self, *arguments: str) -> Any:
        """Run a ``pulumi`` command that prints JSON, and return the parsed JSON."""
        done = self.capture(*arguments)
        if done.returncode != 0:
            errors = error_diagnostics(done.stdout)
            output = "\n".join(error["message"].strip() for error in errors)
            output = output or done.stderr.strip() or done.stdout.strip()
            raise CommandError(f"`pulumi {' '.join(arguments)}` failed: {redact(output)}")
        return json.loads(done.stdout)

    def backend_url(self) -> str:
        """Return the URL of the state backend."""
        return self.env.get(BACKEND) or self.read_json("whoami", "--json")["url"]

    def export_deployment(self, stack: str) -> Mapping[str, Any]:
        """Return the deployment in the stack's state; empty if the stack was never deployed."""
        return self.read_json("stack", "export", "--stack", stack).get("deployment") or {}


def hint_for(output: str) -> str:
    """Return a hint that explains how to fix an error of the engine; empty without a hint."""
    if "incorrect passphrase" not in output:
        return ""
    return (
        f"the passphrase in PULUMI_CONFIG_PASSPHRASE does not decrypt the stack's file or state.\n"
        "Hint: set PULUMI_CONFIG_PASSPHRASE to the passphrase of the stack. Stacks of the local "
        f'cloud have the passphrase "local". {PASSPHRASE_UNDO}'
    )


def with_hint(output: str) -> str:
    """Return the engine's output, followed by a hint on how to fix its error."""
    hint = hint_for(output)
    return f"{output.rstrip()}\n{hint}" if hint else output


def error_diagnostics(output: str) -> list[dict[str, Any]]:
    """Return the errors in the JSON output of a preview or an import; empty for other output."""
    try:
        document = json.loads(output)
    except (ValueError, RecursionError):
        return []
    diagnostics = document.get("diagnostics") if isinstance(document, dict) else None
    return [
        diagnostic
        for diagnostic in diagnostics or ()
        if diagnostic.get("severity") == "error" and diagnostic.get("message")
    ]


#: Maximum time to wait for output after the end of a command, in seconds. Child processes of the
#: command may keep the pipe open.
_LAST_OUTPUT: Final = 5.0
_FORWARDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_at_terminal(command: list[str], cwd: Path, env: Mapping[str, str]) -> int:
    """Run ``command`` and return its exit code; 128 + N if signal N ended the command.

    If stdout or stderr is not a terminal, the output of the command there is redacted.
    """
    at_terminal = _in_foreground()
    # At a terminal, the command is in the foreground and gets Ctrl-C directly. Elsewhere, it has a
    # separate process group, so that it gets each signal exactly once: from this process.
    group = None if at_terminal else 0
    early: list[int] = []
    process: subprocess.Popen[bytes] | None = None

    def forward(number: int, _frame: FrameType | None) -> None:
        if process is None:
            early.append(number)
        elif not (at_terminal and number == signal.SIGINT):
            process.send_signal(number)

    stdout, stderr = (None if os.isatty(file) else subprocess.PIPE for file in (1, 2))
    # Signals that arrive before the start of the command are forwarded after the start.
    with _signals(forward) as arrived:
        process = subprocess.Popen(
            command, cwd=cwd, env=dict(env), process_group=group, stdout=stdout, stderr=stderr
        )
        pipes = ((process.stdout, 1), (process.stderr, 2))
        copies = [_copy_redacted(pipe, file) for pipe, file in pipes if pipe]
        for number in early:
            process.send_signal(number)
        code = _wait(process, arrived)
        for copy in copies:
            copy.join(_LAST_OUTPUT)
        return code if code >= 0 else 128 - code


@contextmanager
def _signals(forward: Callable[[int, FrameType | None], None]) -> Iterator[int]:
    """Call ``forward`` for each signal. The yielded file is readable after each signal."""
    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    arrived, arrives = os.pipe()
    os.set_blocking(arrives, False)  # set_wakeup_fd requires this.
    wakeup = signal.set_wakeup_fd(arrives, warn_on_full_buffer=False)
    try:
        yield arrived
    finally:
        signal.set_wakeup_fd(wakeup)
        os.close(arrived)
        os.close(arrives)
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(process: subprocess.Popen[bytes], arrived: int) -> int:
    """Wait for the end of the process without the races of ``process.wait`` with signals."""
    while (code := process.poll()) is None:
        select.select([arrived], [], [])
        os.read(arrived, 4096)
    return code


def _copy_redacted(source: IO[bytes], file: int) -> threading.Thread:
    def copy() -> None:
        lines = LineRedactor()
        writes = True
        while piece := os.read(source.fileno(), 65_536):
            writes = writes and _write(file, lines.feed(piece))
        if writes:
            _write(file, lines.close())

    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    return thread


def _write(file: int, content: bytes) -> bool:
    """Write all content and return True; return False if the reader closed the stream."""
    try:
        while content:
            content = content[os.write(file, content) :]
    except OSError:
        return False
    return True


def _in_foreground() -> bool:
    try:
        with open("/dev/tty", "rb+", buffering=0) as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
