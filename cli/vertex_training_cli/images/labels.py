"""OCI labels of an image: which commit and which folder it was built from."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from localgcp import git
from vertex_training.settings.section import BELOW

#: https://github.com/opencontainers/image-spec/blob/main/annotations.md
REVISION: Final = "org.opencontainers.image.revision"
SOURCE: Final = "org.opencontainers.image.source"
TITLE: Final = "org.opencontainers.image.title"
#: The folder, and the tag ``context-…`` of what it held.
CONTEXT: Final = "vertex-training.context"
BUILT_FROM: Final = "vertex-training.built-from"
#: Ends a revision whose folder had changes that were not committed.
DIRTY: Final = "-dirty"
_TIMEOUT: Final = 10
#: What is shown of a label: anybody who may push can write anything into it.
_COMMIT: Final = re.compile(r"([0-9a-f]{7,64})(-dirty)?\Z")
_FOLDER: Final = re.compile(rf"{BELOW}\Z")
_MOST_FOLDER: Final = 100
_SHOWN_COMMIT: Final = 12


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an image says that it comes from. Each is empty if the labels do not say it."""

    context: str
    """A folder of the repository."""
    revision: str
    """A commit, perhaps with ``-dirty``."""

    def __str__(self) -> str:
        commit, dash, dirty = self.revision.partition("-")
        shown = f"commit {commit[:_SHOWN_COMMIT]}{dash}{dirty}" if commit else ""
        return " at ".join(filter(None, (self.context, shown)))


def origin(labels: Mapping[str, str]) -> Origin:
    """What labels say, where it has the form of a commit and of a folder; the rest is left out."""
    context, revision = labels.get(CONTEXT, ""), labels.get(REVISION, "")
    return Origin(
        context if len(context) <= _MOST_FOLDER and _FOLDER.match(context) else "",
        revision if _COMMIT.match(revision) else "",
    )


def labels_of(name: str, context: str, tag: str, root: Path) -> dict[str, str]:
    """Labels of the image ``name`` that is built from ``context`` in the checkout ``root``.

    Without git, or outside of a repository, those about a commit are left out.
    """
    found = {TITLE: name, CONTEXT: context, BUILT_FROM: tag}
    commit = _git(root, "rev-parse", "HEAD")
    if commit:
        changed = _git(root, "status", "--porcelain", "--", context)
        found[REVISION] = f"{commit}{DIRTY}" if changed else commit
    if remote := _git(root, "config", "--get", "remote.origin.url"):
        found[SOURCE] = _without_credentials(remote)
    return found


def _git(root: Path, *arguments: str) -> str:
    command = git.command(root, *arguments)
    try:
        ran = subprocess.run(
            command, env=git.variables(), capture_output=True, timeout=_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.decode(errors="replace").strip() if ran.returncode == 0 else ""


def _without_credentials(remote: str) -> str:
    """The address of a repository without user and password."""
    if "://" not in remote:
        return remote.rpartition("@")[2]
    parts = urlsplit(remote)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
