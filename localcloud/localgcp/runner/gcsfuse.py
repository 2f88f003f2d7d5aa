"""``/gcs/BUCKET`` of one job: a folder that is synchronized with the bucket.

Objects are copied in before the job starts, and later those that others write. Files that the job
writes are uploaded through the emulator's API when they have stopped changing, and at the end; so
they get generations and checksums, and the account's rights apply. Of two writers the last one
wins. This is Cloud Storage FUSE without the kernel.

The job makes what it likes in the folder, the runner has the rights of the user: no link is
followed.
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
    """The folder of one bucket."""

    def __init__(
        self, folder: Path, cloud: CloudHost, access: Access, report: Callable[[str], None]
    ) -> None:
        self.folder, self.bucket = folder, folder.name
        self.cloud, self.access, self.report = cloud, access, report
        # A container may replace the folder itself: that of all buckets is opened by its path.
        self._files = RootDirectory(folder.parent)
        self._objects = RootDirectory(cloud.home.storage / self.bucket)
        self._synced: dict[str, Stamp] = {}
        self._seen: dict[str, Stamp] = {}
        self._links: set[str] = set()
        self._known: dict[str, Stamp] = {}
        """Stamps of the objects when they last had the same content as the folder's files."""
        self.refused: set[str] = set()
        """Files that the account may not upload or delete."""

    def fill(self) -> None:
        """Copy the bucket's objects into the folder; without read permission, it stays empty.

        What an earlier server left there is removed: it knew what was uploaded of it.
        """
        delete_folder(self.folder)
        self.folder.mkdir(parents=True)
        if not self.access.may_read(self.bucket):
            self.report(
                f"/gcs/{self.bucket}: the job's account has no read permission; the folder looks "
                "empty."
            )
        self._fetch()
        self._seen = dict(self._synced)

    def sync(self, *, final: bool) -> None:
        """Upload changed files; while the job runs, only files that were stable for one round.

        While the job runs, objects that others wrote or deleted follow.
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
        """Copy objects that other programs changed or deleted, unless the job changed the
        file too.
        """
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
        partial = self.folder.parent.with_name("incoming")  # the job must not see half a file
        try:
            with self._objects.open(name) as source, partial.open("wb") as target:
                shutil.copyfileobj(source, target)
            self._files.take_in(partial, self._path(name))
        except (FileNotFoundError, UnsafePathError):
            return  # deleted since it was listed, or the job has something else in its place
        self._known[name] = stamp
        if copied := self._files.status(self._path(name)):
            self._synced[name] = _stamp(copied)

    def _write(self, name: str, stamp: Stamp) -> None:
        known = name in self._synced
        allowed = self.access.may_change if known else self.access.may_create
        if not allowed(self.bucket):
            self._refuse(name, "storage.objects.create")
            return
        blob, kind = (
            self._client().bucket(self.bucket).blob(name),
            mimetypes.guess_type(name)[0],
        )
        try:
            with self._files.open(self._path(name)) as file:
                size = os.fstat(file.fileno()).st_size
                blob.upload_from_file(file, size=size, content_type=kind)
        except (FileNotFoundError, UnsafePathError):  # as above; the next round sees it as removed
            return
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
            self.report(f"/gcs/{self.bucket}/{name} did not exist in the bucket any more.")

    def _scan(self) -> dict[str, Stamp]:
        """Yield the job's files by name; report each link once."""
        stamps: dict[str, Stamp] = {}
        for name, state in self._files.entries(self.folder.name):
            if stat.S_ISREG(state.st_mode):
                stamps[name] = _stamp(state)
            elif stat.S_ISLNK(state.st_mode) and name not in self._links:
                self._links.add(name)
                what = f"/gcs/{self.bucket}/{name} is a symbolic link and was not uploaded."
                self.report(f"{what} The real service stores an object without content.")
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
    """Return Google's client for the emulator, independent of the environment."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    return storage.Client(
        project="local", credentials=AnonymousCredentials(), client_options={"api_endpoint": url}
    )
