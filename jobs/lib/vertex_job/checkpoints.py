"""Checkpoints in a folder or ``gs://`` prefix that remain valid after a kill at any time.

A checkpoint is a set of files ``step-000000500/NAME`` and a manifest with sizes and checksums,
``step-000000500/manifest.json``, which is written last. A kill leaves either a complete checkpoint
or one without manifest, which is ignored and removed later. No file is renamed.

A single process calls ``save``. Several processes each call ``write_part``, wait at a barrier, and
one calls ``commit``. A checkpoint does not depend on the number of processes that saved it, so
another number may load it. ``BackgroundSaver`` saves in a thread.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TypeVar

from vertex_job.errors import CheckpointError, StoreError
from vertex_job.stores import Content, Output, Store, pieces_of, store_at

MANIFEST = "manifest.json"
_MANIFEST_NAME = re.compile(r"step-(\d{9,})/manifest\.json")
_STEP_FOLDER = re.compile(r"step-(\d{9,})/")
_SUM = ".sum.json"
_T = TypeVar("_T")


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint: step, and files with sizes and SHA-256."""

    store: Store
    step: int
    files: Mapping[str, tuple[int, str]]

    def read(self, name: str) -> bytes:
        """Return a file's content. Raises CheckpointError if it differs from the saved one."""
        return b"".join(self.pieces(name))

    def fetch(self, name: str, target: Path) -> None:
        """Copy a file to ``target`` atomically. Raises CheckpointError or StoreError."""
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=target.parent, delete=False) as file:
                try:
                    for piece in self.pieces(name):
                        file.write(piece)
                    file.close()
                    os.replace(file.name, target)
                except BaseException:
                    os.unlink(file.name)
                    raise
        except OSError as error:
            raise CheckpointError(f"cannot write {target}: {error.strerror}") from error

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield a file's content in pieces of 1 MB; raise at the end if it was changed."""
        if name not in self.files:
            raise CheckpointError(f"{_folder(self.step)} has no {name}")
        size, digest = 0, hashlib.sha256()
        for piece in self.store.pieces(f"{_folder(self.step)}/{name}"):
            size += len(piece)
            digest.update(piece)
            yield piece
        if (size, digest.hexdigest()) != self.files[name]:
            raise CheckpointError(f"{_folder(self.step)}/{name} differs from the saved content")


class Checkpoints:
    """Checkpoints of a job; only the newest ``keep`` are retained."""

    def __init__(self, place: str | Store, keep: int = 3) -> None:
        if keep < 1:
            raise CheckpointError(f"keep must be 1 or more, got {keep}")
        self.store = store_at(place) if isinstance(place, str) else place
        self.keep = keep

    def newest(self) -> Checkpoint | None:
        """Return the newest complete checkpoint after verifying its files, or None."""
        return self._newest(_verified)

    def read_newest(self) -> tuple[int, dict[str, bytes]] | None:
        """Return step and files of the newest complete checkpoint, or None."""
        return self._newest(lambda saved: (saved.step, {n: saved.read(n) for n in saved.files}))

    def _newest(self, read: Callable[[Checkpoint], _T]) -> _T | None:
        """Apply ``read`` to the newest checkpoint without damage; None without a checkpoint."""
        for step in sorted(_steps(self.store.sizes()), reverse=True):
            try:
                return read(self.at(step))
            except (CheckpointError, StoreError) as error:
                print(f"checkpoint {_folder(step)} is incomplete or damaged: {error}", flush=True)
        return None

    def at(self, step: int) -> Checkpoint:
        """Return the checkpoint of a step. Raises CheckpointError or StoreError."""
        try:
            listed = json.loads(self.store.read(f"{_folder(step)}/{MANIFEST}"))
            files = {str(n): (int(f["size"]), str(f["sha256"])) for n, f in listed["files"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{MANIFEST} of the checkpoint is invalid: {error}") from None
        return Checkpoint(self.store, step, files)

    def save(self, step: int, files: Mapping[str, Content]) -> None:
        """Save a checkpoint from a single process."""
        for name, data in files.items():
            self.write_part(step, name, data)
        self.commit(step, files)

    def write_part(self, step: int, name: str, data: Content) -> None:
        """Write one file of a checkpoint that several processes save."""
        if not name or name == MANIFEST or name.endswith(_SUM) or name.startswith("/"):
            raise CheckpointError(f"{name!r} is not a valid name of a checkpoint file")
        at, sums = f"{_folder(step)}/{name}", _Sums()
        content = sums.of_writer(data) if callable(data) else sums.of_content(data)
        # Remove the list first: it may be of an older content of this name.
        self.store.delete(f"{_folder(step)}/{MANIFEST}")
        self.store.write(at, content)
        text = json.dumps({"size": sums.size, "sha256": sums.digest.hexdigest()})
        self.store.write(f"{at}{_SUM}", text.encode())

    def commit(self, step: int, names: Iterable[str]) -> None:
        """Complete a checkpoint after all files are written, and remove old checkpoints.

        Raises CheckpointError if a file is missing.
        """
        sizes, files = self.store.sizes(), dict[str, dict[str, object]]()
        for name in names:
            at = f"{_folder(step)}/{name}"
            if at not in sizes or f"{at}{_SUM}" not in sizes:
                raise CheckpointError(f"file {at} of the checkpoint is missing")
            files[name] = json.loads(self.store.read(f"{at}{_SUM}"))
            if files[name]["size"] != sizes[at]:
                raise CheckpointError(
                    f"{at} has {sizes[at]} bytes instead of {files[name]['size']}"
                )
        text = json.dumps({"step": step, "files": files}, indent=1)
        self.store.write(f"{_folder(step)}/{MANIFEST}", text.encode())
        self._remove(sorted(_steps(self.store.sizes()), reverse=True)[self.keep :])

    def clear_partial(self) -> None:
        """Remove files of interrupted saves.

        One process calls this, before any writes: a file of an earlier attempt must not become a
        part of a checkpoint of this one.
        """
        sizes = self.store.sizes()
        whole = _steps(sizes)
        for name in sizes:
            match = _STEP_FOLDER.match(name)
            if match and int(match[1]) not in whole:
                self.store.delete(name)

    def _remove(self, steps: Iterable[int]) -> None:
        """Remove checkpoints; the manifests first, so that no manifest lists removed files."""
        steps = list(steps)
        if not steps:
            return
        sizes = self.store.sizes()
        for step in steps:
            self.store.delete(f"{_folder(step)}/{MANIFEST}")
            for name in sizes:
                if name.startswith(f"{_folder(step)}/"):
                    self.store.delete(name)


class BackgroundSaver:
    """Saver of checkpoints in a background thread, one at a time."""

    def __init__(self, checkpoints: Checkpoints) -> None:
        self.checkpoints = checkpoints
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._last: Future[None] | None = None

    def save(self, step: int, files: Mapping[str, Content]) -> None:
        """Start saving a checkpoint. The contents must not change until ``wait`` returns.

        Waits for the previous checkpoint first, and raises its errors.
        """
        self.wait()
        self._last = self._thread.submit(self.checkpoints.save, step, files)

    def wait(self) -> None:
        """Wait until the last checkpoint is complete. Raises CheckpointError or StoreError."""
        last, self._last = self._last, None
        if last:
            last.result()


def _folder(step: int) -> str:
    return f"step-{step:09d}"


def _steps(names: Iterable[str]) -> set[int]:
    """Return the steps with a manifest."""
    return {int(match[1]) for name in names if (match := _MANIFEST_NAME.fullmatch(name))}


def _verified(saved: Checkpoint) -> Checkpoint:
    """Read all files of a checkpoint, and return the checkpoint."""
    for name in saved.files:
        for _piece in saved.pieces(name):
            pass
    return saved


class _Sums:
    """Size and SHA-256 of a file's content."""

    def __init__(self) -> None:
        self.size, self.digest = 0, hashlib.sha256()

    def add(self, piece: bytes) -> None:
        self.size += memoryview(piece).nbytes
        self.digest.update(piece)

    def of_content(self, data: bytes | Path) -> bytes | Path:
        """Add the content to the sums, and return it."""
        for piece in pieces_of(data):
            self.add(piece)
        return data

    def of_writer(self, write: Callable[[Output], None]) -> Callable[[Output], None]:
        """Wrap a writer function to add its output to the sums."""

        def summing(output: Output) -> None:
            write(_SummingOutput(self, output))

        return summing


@dataclass(frozen=True)
class _SummingOutput:
    sums: _Sums
    output: Output

    def write(self, piece: bytes) -> int:
        self.sums.add(piece)
        return self.output.write(piece)

    def flush(self) -> None:
        self.output.flush()
