"""Find and remove locks and truncated attribute files of killed runs in a self-managed backend.

``pulumi`` writes ``.pulumi/locks/organization/PROJECT/STACK/UUID.json`` and removes the file at its
end. After a SIGKILL the file remains, and later runs refuse to start.

A file backend stores attributes of the state in ``STACK.json.attrs``, which is not written
atomically (gocloud.dev v0.46.1, blob/fileblob/attrs.go). A truncated attribute file makes every
``pulumi`` command fail with ``failed to load checkpoint: EOF``, although the state is complete.
"""

from __future__ import annotations

import functools
import json
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from localgcp.system import processes
from vertex_training.errors import CommandError

#: Folder of the locks in a self-managed backend.
FOLDER: Final = ".pulumi/locks/organization"


@dataclass(frozen=True)
class StackLock:
    """A lock of a stack. ``place`` is a path or a gs:// URI."""

    place: str
    project: str
    stack: str
    pid: int
    host: str
    remove: Callable[[], None]

    @property
    def alive(self) -> bool:
        """Return True if the lock's process is running, or may run on another host."""
        return not self.here or processes.program(self.pid) == "pulumi"

    @property
    def here(self) -> bool:
        """Return True if the lock's process ran on this host."""
        return self.host == socket.gethostname()

    def refusal(self) -> CommandError:
        """Return the error for a command that needs the lock."""
        hint = "wait until the process has ended."
        if not self.here:
            cancel = f"`pulumi cancel --yes --stack {self.stack}`"
            hint += f" If the process no longer exists, run {cancel}."
        return CommandError(
            f"stack {self.stack} is in use by pulumi, process {self.pid} on {self.host} "
            f"(lock {self.place}).",
            hint,
        )


def find(backend: str) -> list[StackLock]:
    """Return the locks of all stacks of a ``file://`` or ``gs://`` backend; empty for others."""
    if (folder := folder_of(backend)) is not None:
        return in_folder(folder)
    parts = urlsplit(backend)
    if parts.scheme == "gs":
        return _in_bucket(parts.netloc, parts.path.strip("/"))
    return []


def folder_of(backend: str) -> Path | None:
    """Return the folder of a ``file://`` backend; None for other backends."""
    parts = urlsplit(backend)
    return Path(unquote(parts.path)).expanduser() if parts.scheme == "file" else None


def in_folder(folder: Path) -> list[StackLock]:
    """Return the locks of all stacks in a file backend."""
    locks: list[StackLock] = []
    for path in sorted((folder / FOLDER).glob("*/*/*.json")):
        try:
            text = path.read_text()
        except FileNotFoundError:  # The lock was released.
            continue
        # An invalid lock was left by a crash of this machine.
        remove = functools.partial(path.unlink, missing_ok=True)
        locks.append(_lock(str(path), text, remove, socket.gethostname()))
    return locks


def _in_bucket(bucket: str, prefix: str) -> list[StackLock]:
    from google.api_core.exceptions import GoogleAPIError, NotFound
    from google.auth.exceptions import GoogleAuthError
    from google.cloud import storage
    from requests.exceptions import RequestException

    from vertex_training.customjob.google.intent_store import all_blobs

    start = f"{prefix}/{FOLDER}/" if prefix else f"{FOLDER}/"
    locks: list[StackLock] = []
    try:
        # Requests for the objects of a bucket need no project.
        client = storage.Client(project="_")
        for blob in all_blobs(client.list_blobs(bucket, prefix=start)):
            try:
                text = blob.download_as_text()
            except NotFound:  # The lock was released.
                continue
            generation = blob.generation

            def remove(blob: storage.Blob = blob, generation: int | None = generation) -> None:
                try:
                    blob.delete(if_generation_match=generation)
                except NotFound:
                    return  # The lock was released, or removed by another process.

            # Cloud Storage writes objects atomically, so an invalid lock is not removed.
            locks.append(_lock(f"gs://{bucket}/{blob.name}", text, remove, "an unknown host"))
    except (GoogleAPIError, GoogleAuthError, RequestException) as error:
        raise CommandError(
            f"cannot read the locks in gs://{bucket}: {getattr(error, 'message', error)}.",
            "sign in with `gcloud auth application-default login`, or run `pulumi up` directly.",
        ) from None
    return locks


def _lock(place: str, text: str, remove: Callable[[], None], host: str) -> StackLock:
    try:
        data = json.loads(text)
        pid, host = int(data["pid"]), str(data["hostname"])
    except (ValueError, KeyError, TypeError):
        pid = 0
    *_, project, stack, _ = place.split("/")
    return StackLock(place, project, stack, pid, host, remove)


def clear_dead(
    backend: str, project: str, stack: str, log: Callable[[str], None]
) -> list[StackLock]:
    """Remove locks of ended processes and return the locks; refuse if a process still runs."""
    locks = [lock for lock in find(backend) if (lock.project, lock.stack) == (project, stack)]
    for lock in locks:
        if lock.alive:
            raise lock.refusal()
    for lock in locks:
        log(f"removed the lock of stack {stack}, because process {lock.pid} has ended")
        lock.remove()
    return locks


def remove_truncated(
    backend: str, project: str, stack: str, log: Callable[[str], None]
) -> list[Path]:
    """Remove truncated attribute files beside the state of a ``file://`` backend; return them.

    No other process may use the stack during the call. A truncated state raises CommandError.
    """
    folder = folder_of(backend)
    if folder is None:
        return []
    beside = folder / ".pulumi" / "stacks" / project
    if _is_truncated(state := beside / f"{stack}.json"):
        before = state.with_name(f"{state.name}.bak")
        hint = "read docs/operations.md#the-state-is-lost"
        if before.exists() and not _is_truncated(before):
            hint = f"run `cp {before} {state}`, then `vt up --stack {stack} --refresh`."
        text = f"the state of stack {stack} is truncated: {state} is not valid JSON."
        raise CommandError(text, hint)
    files = [beside / f"{stack}.json{compressed}.attrs" for compressed in ("", ".gz", ".zst")]
    truncated = [file for file in files if _is_truncated(file)]
    for file in truncated:
        file.unlink(missing_ok=True)
        log(
            f"removed {file.name}, which a killed run left truncated; the state file itself "
            "is complete"
        )
    return truncated


def _is_truncated(file: Path) -> bool:
    try:
        return not isinstance(json.loads(file.read_bytes()), dict)
    except ValueError:
        return True
    except FileNotFoundError:
        return False
