"""Calls of GitHub's REST API through ``gh``, which runners have: sign-in, retries and pages."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

from vertex_training.errors import CommandError
from vertex_training_cli.engine.values import redact


def read(path: str) -> list[Any]:
    """Everything at ``path``, over all pages.

    Raises:
        CommandError: GitHub could not be asked, or refused.
    """
    answer, found, place = _call(["--paginate", path]).strip(), list[Any](), 0
    decoder = json.JSONDecoder()
    while place < len(answer):  # one document a page, one after the other
        page, place = decoder.raw_decode(answer, place)
        found += page if isinstance(page, list) else [page]
        place += len(answer[place:]) - len(answer[place:].lstrip())
    return found


def write(method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """POST or PATCH ``body`` to ``path``; what GitHub answers.

    Raises:
        CommandError: GitHub could not be asked, or refused.
    """
    return json.loads(_call(["--method", method, path, "--input", "-"], json.dumps(body)))


def download(path: str, most: int) -> bytes | None:
    """The bytes at ``path``; None if there are more than ``most``.

    Raises:
        CommandError: GitHub could not be asked, or refused.
    """
    command = ["gh", "api", path]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None  # a pipe was asked for
            content = process.stdout.read(most + 1)
            if len(content) > most:
                process.kill()
                return None
            error = process.communicate()[1].decode(errors="replace")
    except FileNotFoundError:
        raise _missing() from None
    if process.returncode:
        raise _refused(command, error)
    return content


def _call(arguments: list[str], body: str | None = None) -> str:
    command = ["gh", "api", *arguments]
    try:
        done = subprocess.run(
            command, input=body or "", capture_output=True, text=True, check=False, timeout=120
        )
    except FileNotFoundError:
        raise _missing() from None
    except subprocess.TimeoutExpired:
        raise CommandError(f"{' '.join(command)}: no answer in 120 s.") from None
    if done.returncode:
        raise _refused(command, done.stderr)
    return done.stdout


def _missing() -> CommandError:
    return CommandError(
        "gh is not on PATH.", "runners of GitHub have it; elsewhere: https://cli.github.com."
    )


def _refused(command: list[str], stderr: str) -> CommandError:
    lines = redact(stderr.strip()).splitlines()
    hint = "GH_TOKEN must be set, and the job needs the permission."
    return CommandError(f"{' '.join(command)}: {lines[-1] if lines else 'it failed'}.", hint)
