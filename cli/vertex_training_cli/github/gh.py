"""Calls of GitHub's REST API through ``gh``, which handles sign-in and pages.

Artifacts of runs are not trusted: their size is limited, and their files are never written.
"""

from __future__ import annotations

import io
import json
import struct
import subprocess
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Final

from vertex_training.errors import ArtifactError, CommandError
from vertex_training_cli.engine.values import redact


def read(path: str) -> list[Any]:
    """Return the entries at ``path`` from all pages. Raises CommandError."""
    answer, documents, place = _call(["--paginate", path]).strip(), list[Any](), 0
    decoder = json.JSONDecoder()
    while place < len(answer):  # the output has one document for each page
        page, place = decoder.raw_decode(answer, place)
        documents += page if isinstance(page, list) else [page]
        place += len(answer[place:]) - len(answer[place:].lstrip())
    return documents


def write(method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Send ``body`` to ``path`` by POST or PATCH, and return the response. Raises CommandError."""
    return json.loads(_call(["--method", method, path, "--input", "-"], json.dumps(body)))


def download(path: str, most: int) -> bytes | None:
    """Return the bytes at ``path``; None for more than ``most`` bytes. Raises CommandError."""
    command = ["gh", "api", path]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None  # stdout is a pipe
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
        raise CommandError(f"{' '.join(command)}: GitHub did not respond in 120 s.") from None
    if done.returncode:
        raise _refused(command, done.stderr)
    return done.stdout


def _missing() -> CommandError:
    return CommandError(
        "gh is not on PATH.", "install gh from https://cli.github.com; GitHub's runners have gh."
    )


def _refused(command: list[str], stderr: str) -> CommandError:
    lines = redact(stderr.strip()).splitlines()
    hint = "set GH_TOKEN, and grant the job the permission in the workflow."
    return CommandError(
        f"{' '.join(command)}: {lines[-1] if lines else 'failed without a message'}.", hint
    )


#: Maximum number of bytes of a downloaded artifact, and of a file in an artifact.
MAX_ARCHIVE: Final = 32 * 2**20
MAX_FILE: Final = 16 * 2**20
MAX_FILES: Final = 50
#: Compression methods that the upload action of GitHub uses.
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: Other errors that ``zipfile`` raises for damaged, encrypted and unknown archives.
_UNREADABLE: Final = (OSError, EOFError, ValueError, NotImplementedError, RuntimeError)
#: The bits of a Unix mode that contain the kind of a file, and their values for regular files.
_KIND: Final = 0o170000
_PLAIN: Final = (0, 0o100000)


def artifact_of(repository: str, run: int, name: str) -> bytes:
    """Return the archive of a run's newest artifact with this name. Raises ArtifactError."""
    listed = artifacts(f"repos/{repository}/actions/runs/{run}/artifacts", name)
    own = (a for a in listed if (a.get("workflow_run") or {}).get("id", run) == run)
    newest, content = next(own, None), None
    if newest is None:
        raise ArtifactError(f"run {run} has no artifact {name}.")
    if newest["size_in_bytes"] <= MAX_ARCHIVE:
        path = f"repos/{repository}/actions/artifacts/{int(newest['id'])}/zip"
        content = download(path, MAX_ARCHIVE)
    if content is None:
        raise ArtifactError(f"artifact {name} has more than {MAX_ARCHIVE} bytes.")
    return content


def artifacts(path: str, name: str, most: int | None = None) -> list[dict[str, Any]]:
    """Return the unexpired artifacts among the ``most`` newest with this name, newest first."""
    pages = read(f"{path}?name={name}&per_page=100")
    listed = [artifact for page in pages for artifact in page.get("artifacts") or ()]
    newest = sorted(listed, key=lambda artifact: artifact["id"], reverse=True)[:most]
    return [a for a in newest if a.get("name") == name and not a.get("expired")]


def read_file(archive: bytes, name: str) -> bytes | None:
    """Return a file at the top of ``archive``; None without this file. Raises ArtifactError."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            if len(opened.infolist()) > MAX_FILES:
                raise ArtifactError(f"the artifact has more than {MAX_FILES} files.")
            members = [member for member in opened.infolist() if member.filename == name]
            if not members:
                return None
            if len(members) > 1:
                raise ArtifactError(f"the artifact has several files {name}.")
            return _content(opened, members[0], name)
    except (zipfile.BadZipFile, zlib.error, struct.error, *_UNREADABLE):
        raise ArtifactError("the artifact is not a readable archive.") from None


def _content(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> bytes:
    kind = (entry.external_attr >> 16) & _KIND
    if kind not in _PLAIN or entry.is_dir():
        raise ArtifactError(f"{name} in the artifact is not a regular file.")
    if entry.compress_type not in _METHODS or entry.flag_bits & 1:
        raise ArtifactError(f"{name} in the artifact has an unexpected compression or encryption.")
    with opened.open(entry) as file:
        content = file.read(MAX_FILE + 1)  # the size in the header may be wrong
    if len(content) > MAX_FILE:
        raise ArtifactError(f"{name} in the artifact has more than {MAX_FILE} bytes.")
    return content
