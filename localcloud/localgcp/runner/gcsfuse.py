"""``/gcs/BUCKET`` of one job: a folder that is kept in step with the bucket.

Objects are copied in before the job starts, and later those that others write. Files that the job
writes are uploaded through the emulator's API when they have stopped changing, and at the end; so
they get generations and checksums, and the account's rights apply. Of two writers the last one
wins. This is Cloud Storage FUSE without the kernel.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from localgcp.vertex.admission import Access

#: Modification time in nanoseconds, size in bytes, inode: the emulator replaces files as a whole.
Stamp = tuple[int, int, int]


class Mount:
    """The folder of one bucket; ``objects`` is where the emulator keeps it."""

    def __init__(
        self,
        folder: Path,
        objects: Path,
        access: Access,
        url: str,
        report: Callable[[str], None],
    ) -> None:
        self.folder = folder
        self.objects = objects
        self.bucket = objects.name
        self.access = access
        self.url = url
        self.report = report
        self._synced: dict[str, Stamp] = {}
        self._seen: dict[str, Stamp] = {}
        self._known: dict[str, Stamp] = {}
        """Objects as they were when they last equalled the folder's files."""
        self.refused: set[str] = set()
        """What the account may not upload or delete."""

    def fill(self) -> None:
        """Copy the emulator's files in. Without the right to read, the folder stays empty.

        What an earlier server left there is removed: it knew what was uploaded of it.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        if not self.access.may_read(self.bucket):
            self.report(f"/gcs/{self.bucket}: the job's account may not read it; it looks empty.")
        self._fetch()
        self._seen = dict(self._synced)

    def sync(self, *, final: bool) -> None:
        """Upload files that changed (while the job runs: and then stayed equal for one round).

        While the job runs, objects that others wrote or deleted follow.
        """
        current = _scan(self.folder)
        for name, stamp in current.items():
            if stamp != self._synced.get(name) and (final or stamp == self._seen.get(name)):
                self._write(name, stamp)
        for name in set(self._synced) - set(current):
            self._remove(name)
        self._seen = current
        if not final:
            self._fetch()

    def _fetch(self) -> None:
        """Take over what others wrote or deleted, where the job has not changed it itself."""
        if not self.access.may_read(self.bucket):
            return
        objects = _scan(self.objects)
        for name, stamp in objects.items():
            if stamp != self._known.get(name) and self._is_unchanged(name):
                self._copy(name, stamp)
        for name in set(self._known) - set(objects):
            if self._is_unchanged(name):
                (self.folder / name).unlink(missing_ok=True)
                self._synced.pop(name, None)
            del self._known[name]

    def _is_unchanged(self, name: str) -> bool:
        return _stamp(self.folder / name) == self._synced.get(name)

    def _copy(self, name: str, stamp: Stamp) -> None:
        target = self.folder / name
        partial = self.folder.parent.with_name("incoming")  # the job must not see half a file
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.objects / name, partial)
            partial.replace(target)
        except (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError):
            return  # deleted since it was listed, or the job has a folder by the name of a file
        self._known[name] = stamp
        if copied := _stamp(target):
            self._synced[name] = copied

    def _write(self, name: str, stamp: Stamp) -> None:
        known = name in self._synced
        allowed = self.access.may_change if known else self.access.may_create
        if not allowed(self.bucket):
            self._refuse(name, "storage.objects.create")
            return
        try:
            self._client().bucket(self.bucket).blob(name).upload_from_filename(self.folder / name)
        except FileNotFoundError:  # as above; the next round sees it as removed
            return
        self._synced[name] = stamp
        if made := _stamp(self.objects / name):
            self._known[name] = made

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
            self.report(f"/gcs/{self.bucket}/{name} was already gone from the bucket.")

    def _refuse(self, name: str, permission: str) -> None:
        if name not in self.refused:
            self.refused.add(name)
            self.report(f"/gcs/{self.bucket}/{name}: not uploaded, {permission} denied.")

    def _client(self) -> Any:
        return storage_client(self.url)


def _scan(folder: Path) -> dict[str, Stamp]:
    """Files below a folder, by their paths in it."""
    found: dict[str, Stamp] = {}
    for above, _, names in os.walk(folder):
        for name in names:
            path = Path(above, name)
            if stamp := _stamp(path):
                found[path.relative_to(folder).as_posix()] = stamp
    return found


def _stamp(path: Path) -> Stamp | None:
    """None if there is no such file, perhaps since it was listed."""
    try:
        state = path.stat()
    except OSError:  # also a symbolic link that leads nowhere
        return None
    regular = stat.S_ISREG(state.st_mode)
    return (state.st_mtime_ns, state.st_size, state.st_ino) if regular else None


def storage_client(url: str) -> Any:
    """Google's client, pointed at the emulator whatever the environment says."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    return storage.Client(
        project="local", credentials=AnonymousCredentials(), client_options={"api_endpoint": url}
    )
