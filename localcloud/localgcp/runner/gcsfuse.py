"""Synchronizes the folder ``/gcs/BUCKET`` of one job with the bucket, without a file system driver.

Files are uploaded through the emulator's API when they stop changing. The last writer wins. The
runner follows no link of the job.
"""

from __future__ import annotations

import mimetypes
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from localgcp.errors import UnsafePathError
from localgcp.runner.programs import CloudHost
from localgcp.system.root_directory import RootDirectory, delete_folder
from localgcp.vertex.admission import Access

#: Modification time (ns), size and inode of a file; the emulator replaces files as a whole.
Stamp = tuple[int, int, int]


class Mount:
    """The folder of one bucket of a job."""

    def __init__(
        self, folder: Path, cloud: CloudHost, access: Access, report: Callable[[str], None]
    ) -> None:
        self.folder, self.bucket = folder, folder.name
        self.cloud, self.access, self.report = cloud, access, report
        # A container may replace the folder, so only the parent folder is opened by its path.
        self._files = RootDirectory(folder.parent)
        self._objects = RootDirectory(cloud.home.storage / self.bucket)
        self._synced: dict[str, Stamp] = {}
        self._seen: dict[str, Stamp] = {}
        self._links: set[str] = set()
        self._known: dict[str, Stamp] = {}
        """Stamps of the objects when the folder's files last had the same content."""
        self.refused: set[str] = set()
        """Files that the account may not upload or delete."""

    def fill(self) -> None:
        """Replace the folder by a copy of the bucket; without read permission, leave it empty."""
        delete_folder(self.folder)
        self.folder.mkdir(parents=True)
        if not self.access.may_read(self.bucket):
            text = "the job's account has no read permission; the folder looks empty."
            self.report(f"/gcs/{self.bucket}: {text}")
        self._fetch()
        self._seen = dict(self._synced)

    def sync(self, *, final: bool) -> None:
        """Upload changed files; unless ``final``, only files that were stable for one round.

        Unless ``final``, also download objects that other programs changed.
        """
        current = self._scan()
        for name, stamp in current.items():
            if stamp != self._synced.get(name) and (final or stamp == self._seen.get(name)):
                self._write(name, stamp)
        for name in set(self._synced) - set(current):
            self._remove(name)
        self._seen = current
        if not final:
            self._fetch()

    def _fetch(self) -> None:
        """Download changed objects, except files that the job changed, too."""
        if not self.access.may_read(self.bucket):
            return
        objects = {name: _stamp(blob) for name, blob in self._objects.files()}
        for name, stamp in objects.items():
            if stamp != self._known.get(name) and self._is_unchanged(name):
                self._copy(name, stamp)
        for name in set(self._known) - set(objects):
            if self._is_unchanged(name):
                self._files.remove(self._path(name))
                self._synced.pop(name, None)
            del self._known[name]

    def _is_unchanged(self, name: str) -> bool:
        status = self._files.status(self._path(name))
        return (_stamp(status) if status else None) == self._synced.get(name)

    def _path(self, name: str) -> str:
        return f"{self.folder.name}/{name}"

    def _copy(self, name: str, stamp: Stamp) -> None:
        partial = self.folder.parent.with_name("incoming")  # hides incomplete files from the job
        try:
            with self._objects.open(name) as source, partial.open("wb") as target:
                shutil.copyfileobj(source, target)
            self._files.take_in(partial, self._path(name))
        except (FileNotFoundError, UnsafePathError):
            return  # the object was deleted, or the job created something else at this path
        self._known[name] = stamp
        if copied := self._files.status(self._path(name)):
            self._synced[name] = _stamp(copied)

    def _write(self, name: str, stamp: Stamp) -> None:
        known = name in self._synced
        allowed = self.access.may_change if known else self.access.may_create
        if not allowed(self.bucket):
            self._refuse(name, "storage.objects.create")
            return
        blob = self._client().bucket(self.bucket).blob(name)
        try:
            with self._files.open(self._path(name)) as file:
                size, kind = os.fstat(file.fileno()).st_size, mimetypes.guess_type(name)[0]
                blob.upload_from_file(file, size=size, content_type=kind)
        except (FileNotFoundError, UnsafePathError):
            return  # the job removed or replaced the file; the next round handles this
        self._synced[name] = stamp
        if made := self._objects.status(name):
            self._known[name] = _stamp(made)

    def _remove(self, name: str) -> None:
        from google.api_core.exceptions import NotFound

        if not self.access.may_change(self.bucket):
            self._refuse(name, "storage.objects.delete")
            return
        del self._synced[name]
        self._known.pop(name, None)
        try:
            self._client().bucket(self.bucket).blob(name).delete()
        except NotFound:
            self.report(f"/gcs/{self.bucket}/{name} was already deleted from the bucket.")

    def _scan(self) -> dict[str, Stamp]:
        stamps: dict[str, Stamp] = {}
        for name, state in self._files.entries(self.folder.name):
            if stat.S_ISREG(state.st_mode):
                stamps[name] = _stamp(state)
            elif stat.S_ISLNK(state.st_mode) and name not in self._links:
                self._links.add(name)
                self.report(
                    f"/gcs/{self.bucket}/{name} is a symbolic link and was not uploaded. "
                    "The real service stores an object without content."
                )
        return stamps

    def _refuse(self, name: str, permission: str) -> None:
        if name not in self.refused:
            self.refused.add(name)
            self.report(f"/gcs/{self.bucket}/{name} was not uploaded: {permission} denied.")

    def _client(self) -> Any:
        return storage_client(self.cloud.storage_url)


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_mtime_ns, status.st_size, status.st_ino


def storage_client(url: str) -> Any:
    """Return Google's client for the storage emulator; environment variables have no effect."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    options = {"api_endpoint": url}
    return storage.Client("local", AnonymousCredentials(), client_options=options)
