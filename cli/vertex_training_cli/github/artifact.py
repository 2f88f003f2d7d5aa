"""An artifact of a run, read without trust in the run: bounded, and never unpacked to a disk."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Final

from vertex_training.errors import ArtifactError
from vertex_training_cli.github import gh

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


def download(repository: str, run: int, name: str) -> bytes:
    """The archive of a run's newest artifact with this name.

    Raises:
        ArtifactError: there is none, it has expired, or it is too large.
        CommandError: GitHub could not be asked, or refused.
    """
    pages = gh.read(f"repos/{repository}/actions/runs/{run}/artifacts?name={name}&per_page=100")
    listed = [each for page in pages for each in page.get("artifacts") or ()]
    own = [each for each in listed if _is_of(each, run, name)]
    if not own:
        raise ArtifactError(f"run {run} has no artifact {name}.")
    newest = max(own, key=lambda each: each["id"])
    if newest["size_in_bytes"] > MAX_ARCHIVE:
        raise ArtifactError(f"the artifact {name} has more than {MAX_ARCHIVE} bytes.")
    content = gh.download(
        f"repos/{repository}/actions/artifacts/{int(newest['id'])}/zip", MAX_ARCHIVE
    )
    if content is None:
        raise ArtifactError(f"the artifact {name} has more than {MAX_ARCHIVE} bytes.")
    return content


def _is_of(artifact: Mapping[str, Any], run: int, name: str) -> bool:
    made_by = (artifact.get("workflow_run") or {}).get("id", run)
    return artifact.get("name") == name and not artifact.get("expired") and made_by == run


def read_file(archive: bytes, name: str) -> bytes | None:
    """The file with exactly this name at the top of ``archive``; None if there is none.

    Raises:
        ArtifactError: the archive is damaged, or the file is none, twice there, or too large.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            if len(opened.infolist()) > MAX_FILES:
                raise ArtifactError(f"the artifact has more than {MAX_FILES} files.")
            found = [each for each in opened.infolist() if each.filename == name]
            if not found:
                return None
            if len(found) > 1:
                raise ArtifactError(f"the artifact has {name} twice.")
            return _content(opened, found[0], name)
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
