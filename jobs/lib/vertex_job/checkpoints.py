"""Checkpoints that survive a kill at any moment, below one folder or ``gs://`` prefix.

A checkpoint is a set of files ``step-000000500/NAME`` and a list of them with sizes and checksums,
``step-000000500/manifest.json``, which is written last. A kill at any moment leaves either a whole
checkpoint or one without its list, which is ignored and removed later. Nothing is renamed.

One process saves alone with ``save``. Several save together: each calls ``write_part``, all meet
at a barrier, and one calls ``commit``. A checkpoint says nothing of how many processes made it, so
another number may load it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from vertex_job.errors import CheckpointError, StoreError
from vertex_job.stores import Store, pieces_of, store_at

MANIFEST = "manifest.json"
_MANIFEST_NAME = re.compile(r"step-(\d{9,})/manifest\.json")
_STEP_FOLDER = re.compile(r"step-(\d{9,})/")
_SUM = ".sum.json"


@dataclass(frozen=True)
class Checkpoint:
    """A whole checkpoint: its step, and its files with their sizes and SHA-256."""

    store: Store
    step: int
    files: Mapping[str, tuple[int, str]]

    def read(self, name: str) -> bytes:
        """A file's content. Raises CheckpointError if it is not what was saved."""
        return b"".join(self.pieces(name))

    def fetch(self, name: str, target: Path) -> None:
        """Write a file here, whole or not at all. Raises CheckpointError or StoreError."""
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
        """A file's content, a megabyte at a time; raises at its end if it is not what was saved."""
        if name not in self.files:
            raise CheckpointError(f"{_folder(self.step)} has no {name}")
        size, digest = 0, hashlib.sha256()
        for piece in self.store.pieces(f"{_folder(self.step)}/{name}"):
            size += len(piece)
            digest.update(piece)
            yield piece
        if (size, digest.hexdigest()) != self.files[name]:
            raise CheckpointError(f"{_folder(self.step)}/{name} is not what was saved")


class Checkpoints:
    """The checkpoints of a job; the newest ``keep`` stay."""

    def __init__(self, place: str | Store, keep: int = 3) -> None:
        if keep < 1:
            raise CheckpointError(f"keep is 1 or more, got {keep}")
        self.store = store_at(place) if isinstance(place, str) else place
        self.keep = keep

    def newest(self) -> Checkpoint | None:
        """The newest whole checkpoint, found by listing; None if there is none.

        All its files are read: one whose content is damaged does not count.
        """
        sizes = self.store.sizes()
        for step in sorted(_steps(sizes), reverse=True):
            try:
                found = self.at(step)
                for name in found.files:
                    for _piece in found.pieces(name):
                        pass
            except (CheckpointError, StoreError) as error:
                print(f"checkpoint {_folder(step)} is not whole: {error}", flush=True)
                continue
            return found
        return None

    def at(self, step: int) -> Checkpoint:
        """The checkpoint of a step. Raises CheckpointError or StoreError if it has no list."""
        try:
            listed = json.loads(self.store.read(f"{_folder(step)}/{MANIFEST}"))
            files = {str(n): (int(f["size"]), str(f["sha256"])) for n, f in listed["files"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"its {MANIFEST} is damaged: {error}") from None
        return Checkpoint(self.store, step, files)

    def save(self, step: int, files: Mapping[str, bytes | Path]) -> None:
        """Save a checkpoint by this process alone: contents, or files of this machine."""
        for name, data in files.items():
            self.write_part(step, name, data)
        self.commit(step, files)

    def write_part(self, step: int, name: str, data: bytes | Path) -> None:
        """Write one file of a checkpoint that several processes save."""
        if not name or name == MANIFEST or name.endswith(_SUM) or name.startswith("/"):
            raise CheckpointError(f"{name!r} is no name of a file of a checkpoint")
        size, sha256 = _sum_of(data)
        # First away with what lists an older content of this name.
        self.store.delete(f"{_folder(step)}/{MANIFEST}")
        self.store.write(f"{_folder(step)}/{name}", data)
        text = json.dumps({"size": size, "sha256": sha256})
        self.store.write(f"{_folder(step)}/{name}{_SUM}", text.encode())

    def commit(self, step: int, names: Iterable[str]) -> None:
        """Make a checkpoint whole, once all its files are written, and remove old ones.

        Raises CheckpointError if a file is missing.
        """
        sizes, files = self.store.sizes(), dict[str, dict[str, object]]()
        for name in names:
            at = f"{_folder(step)}/{name}"
            if at not in sizes or f"{at}{_SUM}" not in sizes:
                raise CheckpointError(f"{at} was not written")
            files[name] = json.loads(self.store.read(f"{at}{_SUM}"))
            if files[name]["size"] != sizes[at]:
                raise CheckpointError(f"{at} has {sizes[at]} bytes, not {files[name]['size']}")
        text = json.dumps({"step": step, "files": files}, indent=1)
        self.store.write(f"{_folder(step)}/{MANIFEST}", text.encode())
        self._remove(sorted(_steps(self.store.sizes()), reverse=True)[self.keep :])

    def clear_partial(self) -> None:
        """Remove what an interrupted save left.

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
        """Remove checkpoints; their lists first, so that none lists what is gone."""
        steps = list(steps)
        if not steps:
            return
        sizes = self.store.sizes()
        for step in steps:
            self.store.delete(f"{_folder(step)}/{MANIFEST}")
            for name in sizes:
                if name.startswith(f"{_folder(step)}/"):
                    self.store.delete(name)


def _folder(step: int) -> str:
    return f"step-{step:09d}"


def _steps(names: Iterable[str]) -> set[int]:
    """Steps whose list is there."""
    return {int(match[1]) for name in names if (match := _MANIFEST_NAME.fullmatch(name))}


def _sum_of(data: bytes | Path) -> tuple[int, str]:
    size, digest = 0, hashlib.sha256()
    for piece in pieces_of(data):
        size += len(piece)
        digest.update(piece)
    return size, digest.hexdigest()
