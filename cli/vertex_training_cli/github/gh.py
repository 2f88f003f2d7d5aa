"""Calls of GitHub's REST API through ``gh``, which runners have: sign-in, retries and pages.

Artifacts of runs are read without trust: bounded, and never unpacked to a disk.
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
    """Return everything at ``path``, over all pages.

    Raises:
        CommandError: GitHub could not be asked, or refused.
    """
    answer, documents, place = _call(["--paginate", path]).strip(), list[Any](), 0
    decoder = json.JSONDecoder()
    while place < len(answer):  # one document a page, one after the other
        page, place = decoder.raw_decode(answer, place)
        documents += page if isinstance(page, list) else [page]
        place += len(answer[place:]) - len(answer[place:].lstrip())
    return documents


def write(method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """POST or PATCH ``body`` to ``path``; what GitHub answers.

    Raises:
        CommandError: GitHub could not be asked, or refused.
    """
    return json.loads(_call(["--method", method, path, "--input", "-"], json.dumps(body)))


def download(path: str, most: int) -> bytes | None:
    """Return the bytes at ``path``; None if there are more than ``most``.

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


#: Bytes of an artifact as it is downloaded, and of a file in it.
MAX_ARCHIVE: Final = 32 * 2**20
MAX_FILE: Final = 16 * 2**20
MAX_FILES: Final = 50
#: Methods of compression that the runner's action uses.
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: What ``zipfile`` raises for damaged, encrypted and unknown archives, beside its own error.
_UNREADABLE: Final = (OSError, EOFError, ValueError, NotImplementedError, RuntimeError)
#: The bits of a Unix mode that tell the kind of a file, and those of a plain one.
_KIND: Final = 0o170000
_PLAIN: Final = (0, 0o100000)


def artifact_of(repository: str, run: int, name: str) -> bytes:
    """Return the archive of a run's newest artifact with this name.

    Raises:
        ArtifactError: there is none, it has expired, or it is too large.
        CommandError: GitHub could not be asked, or refused.
    """
    pages = read(f"repos/{repository}/actions/runs/{run}/artifacts?name={name}&per_page=100")
    listed = [artifact for page in pages for artifact in page.get("artifacts") or ()]
    own = [artifact for artifact in listed if _is_of(artifact, run, name)]
    if not own:
        raise ArtifactError(f"run {run} has no artifact {name}.")
    newest = max(own, key=lambda artifact: artifact["id"])
    if newest["size_in_bytes"] > MAX_ARCHIVE:
        raise ArtifactError(f"the artifact {name} has more than {MAX_ARCHIVE} bytes.")
    content = download(f"repos/{repository}/actions/artifacts/{int(newest['id'])}/zip", MAX_ARCHIVE)
    if content is None:
        raise ArtifactError(f"the artifact {name} has more than {MAX_ARCHIVE} bytes.")
    return content


def _is_of(artifact: Mapping[str, Any], run: int, name: str) -> bool:
    made_by = (artifact.get("workflow_run") or {}).get("id", run)
    return artifact.get("name") == name and not artifact.get("expired") and made_by == run


def read_file(archive: bytes, name: str) -> bytes | None:
    """Return the file with exactly this name at the top of ``archive``; None if there is none.

    Raises:
        ArtifactError: the archive is damaged, or the file is none, twice there, or too large.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            if len(opened.infolist()) > MAX_FILES:
                raise ArtifactError(f"the artifact has more than {MAX_FILES} files.")
            members = [member for member in opened.infolist() if member.filename == name]
            if not members:
                return None
            if len(members) > 1:
                raise ArtifactError(f"the artifact has {name} twice.")
            return _content(opened, members[0], name)
    except (zipfile.BadZipFile, zlib.error, struct.error, *_UNREADABLE):
        raise ArtifactError("the artifact is no archive that can be read.") from None


def _content(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> bytes:
    kind = (entry.external_attr >> 16) & _KIND
    if kind not in _PLAIN or entry.is_dir():
        raise ArtifactError(f"{name} in the artifact is no plain file.")
    if entry.compress_type not in _METHODS or entry.flag_bits & 1:
        raise ArtifactError(f"{name} in the artifact is not stored as the workflow stores it.")
    with opened.open(entry) as file:
        content = file.read(MAX_FILE + 1)  # whatever its header says about its size
    if len(content) > MAX_FILE:
        raise ArtifactError(f"{name} in the artifact has more than {MAX_FILE} bytes.")
    return content
