"""Files that a killed run left in a self-managed backend: locks and truncated attributes.

``pulumi`` writes ``.pulumi/locks/organization/PROJECT/STACK/UUID.json`` with its process id and
host name, and removes it at its end. After a SIGKILL the file stays, and every later run refuses
to start. ``pulumi cancel`` removes all locks of a stack, also that of a run that begins at the
same time. This module removes only the files that it found dead.

A file backend keeps an object's attributes as ``STACK.json.attrs``. It replaces the state in one
step, but writes this file in place and first (gocloud.dev v0.46.1, blob/fileblob/attrs.go). After
a kill in between, every ``pulumi`` fails with ``failed to load checkpoint: EOF``. The state is
whole, and does not need the other file. One that is not whole (a crash of the machine, a copy that
a full disk cut off) is refused: of it the engine says ``unexpected end of JSON input``, no file.
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
        """Return True if the lock's holder is running. A holder on another host counts as running.

        The process id may be reused by another program, so compare the program's name.
        """
        return not self.here or processes.program(self.pid) == "pulumi"

    @property
    def here(self) -> bool:
        """Return True if the lock's holder ran on this host."""
        return self.host == socket.gethostname()

    def refusal(self) -> CommandError:
        """Return the error for a command that needs the lock."""
        hint = "wait until the process has ended."
        if not self.here:
            cancel = f"`pulumi cancel --yes --stack {self.stack}`"
            hint = f"wait until the process has ended. If it no longer exists, run {cancel}."
        return CommandError(
            f"stack {self.stack} is in use by pulumi, process {self.pid} on {self.host} "
            f"(lock {self.place}).",
            hint,
        )


def find(backend: str) -> list[StackLock]:
    """Return the locks of all stacks of a backend (``file://…``, ``gs://…``).

    Empty for other kinds of backend: Pulumi Cloud ends the locks of dead runs by itself, and other
    object stores are not read here.

    Raises:
        CommandError: the bucket cannot be read.
    """
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
        except FileNotFoundError:  # released meanwhile
            continue
        # One that cannot be read was left by a crash of this machine while it was written.
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
        # Without a project of one's own: this only ever reads and deletes objects of one bucket.
        client = storage.Client(project="_")
        for blob in all_blobs(client.list_blobs(bucket, prefix=start)):
            try:
                text = blob.download_as_text()
            except NotFound:  # released meanwhile
                continue
            generation = blob.generation

            def remove(blob: storage.Blob = blob, generation: int | None = generation) -> None:
                try:
                    blob.delete(if_generation_match=generation)
                except NotFound:
                    return  # released, or cleared by another process

            # An object is never half written: one that cannot be read is not ours to clear.
            locks.append(_lock(f"gs://{bucket}/{blob.name}", text, remove, "an unknown host"))
    except (GoogleAPIError, GoogleAuthError, RequestException) as error:
        raise CommandError(
            f"cannot read the locks in gs://{bucket}: {getattr(error, 'message', error)}.",
            "sign in by `gcloud auth application-default login`, or run `pulumi up` itself.",
        ) from None
    return locks


def _lock(place: str, text: str, remove: Callable[[], None], host: str) -> StackLock:
    """Parse a lock. ``host`` is the default for a lock without a host name."""
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
    """Remove the stack's locks whose process has ended, and return them.

    Raises:
        CommandError: a live process holds one, or a process on another host.
    """
    locks = [lock for lock in find(backend) if (lock.project, lock.stack) == (project, stack)]
    for lock in locks:
        if lock.alive:
            raise lock.refusal()
    for lock in locks:
        log(f"removed the lock of stack {stack}: its process {lock.pid} has ended")
        lock.remove()
    return locks


def remove_truncated(
    backend: str, project: str, stack: str, log: Callable[[str], None]
) -> list[Path]:
    """Remove truncated attribute files beside the state of a ``file://`` backend, and return them.

    Call it only while no other process uses the stack: a file that is being written looks the same.

    Raises:
        CommandError: the state itself is truncated; with the way back.
    """
    folder = folder_of(backend)
    if folder is None:
        return []
    beside = folder / ".pulumi" / "stacks" / project
    if _is_truncated(state := beside / f"{stack}.json"):
        raise _truncated_state(state, stack)
    files = [beside / f"{stack}.json{compressed}.attrs" for compressed in ("", ".gz", ".zst")]
    truncated = [file for file in files if _is_truncated(file)]
    for file in truncated:
        file.unlink(missing_ok=True)
        log(
            f"removed {file.name}, which a killed run left truncated; the state file itself "
            "is complete"
        )
    return truncated


def _truncated_state(file: Path, stack: str) -> CommandError:
    before = file.with_name(f"{file.name}.bak")
    way = "docs/operations.md#the-state-is-lost"
    if before.exists() and not _is_truncated(before):
        way = f"run `cp {before} {file}`, then `vt up --stack {stack} --refresh`."
    return CommandError(f"the state of stack {stack} is truncated: {file} is not valid JSON.", way)


def _is_truncated(file: Path) -> bool:
    try:
        return not isinstance(json.loads(file.read_bytes()), dict)
    except ValueError:
        return True
    except FileNotFoundError:
        return False
