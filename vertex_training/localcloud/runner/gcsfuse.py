"""``/gcs/BUCKET`` of one job: a folder that is kept in step with the bucket.

Objects are copied in before the job starts. Files that the job writes are uploaded through the
emulator's API when they have stopped changing, and at the end; so they get generations and
checksums, and the account's rights apply. This is Cloud Storage FUSE without the kernel: objects
that others write while the job runs do not appear.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vertex_training.localcloud.vertex.admission import Access

#: Modification time in nanoseconds, size in bytes.
Stamp = tuple[int, int]


class Mount:
    """The folder of one bucket."""

    def __init__(
        self, folder: Path, bucket: str, access: Access, url: str, report: Callable[[str], None]
    ) -> None:
        self.folder = folder
        self.bucket = bucket
        self.access = access
        self.url = url
        self.report = report
        self._synced: dict[str, Stamp] = {}
        self._seen: dict[str, Stamp] = {}
        self._refused: set[str] = set()

    def fill(self, objects: Path) -> None:
        """Copy the emulator's files in. Without the right to read, the folder stays empty."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.access.may_read(self.bucket):
            self.report(f"/gcs/{self.bucket}: the job's account may not read it; it looks empty.")
            return
        shutil.copytree(objects, self.folder, dirs_exist_ok=True)
        self._synced = self._seen = self._scan()

    def sync(self, *, final: bool) -> None:
        """Upload files that changed (while the job runs: and then stayed equal for one round)."""
        current = self._scan()
        for name, stamp in current.items():
            if stamp != self._synced.get(name) and (final or stamp == self._seen.get(name)):
                self._write(name, stamp)
        for name in set(self._synced) - set(current):
            self._remove(name)
        self._seen = current

    def _scan(self) -> dict[str, Stamp]:
        found: dict[str, Stamp] = {}
        for path in self.folder.rglob("*"):
            try:
                if path.is_file():
                    stat = path.stat()
                    found[path.relative_to(self.folder).as_posix()] = (
                        stat.st_mtime_ns,
                        stat.st_size,
                    )
            except FileNotFoundError:  # removed by the job since it was listed
                continue
        return found

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

    def _remove(self, name: str) -> None:
        from google.api_core.exceptions import NotFound

        if not self.access.may_change(self.bucket):
            self._refuse(name, "storage.objects.delete")
            return
        del self._synced[name]
        try:
            self._client().bucket(self.bucket).blob(name).delete()
        except NotFound:
            self.report(f"/gcs/{self.bucket}/{name} was already gone from the bucket.")

    def _refuse(self, name: str, permission: str) -> None:
        if name not in self._refused:
            self._refused.add(name)
            self.report(f"/gcs/{self.bucket}/{name}: not uploaded, {permission} denied.")

    def _client(self) -> Any:
        return storage_client(self.url)


def storage_client(url: str) -> Any:
    """Google's client, pointed at the emulator whatever the environment says."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    return storage.Client(
        project="local", credentials=AnonymousCredentials(), client_options={"api_endpoint": url}
    )
