"""Synchronizes the folder ``/gcs/BUCKET`` of one job with the bucket, without a file system driver.

Files are uploaded through the emulator's API when they stop changing. The last writer wins. The
runner follows no link of the job.

With a private ``/gcs``, writable buckets of a job are copied and other buckets are read-only.
Without it, and in containers, only buckets that the job names exist. A file outside of all buckets
is an error.
"""

from __future__ import annotations

import mimetypes
import os
import shutil
import stat
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any, Final

from localgcp.containers.engines import registry_path
from localgcp.errors import UnsafePathError
from localgcp.runner import environment, hosts
from localgcp.runner.hosts import BucketView, Replica
from localgcp.runner.programs import CloudHost
from localgcp.system.root_directory import RootDirectory, delete_folder, make_folder
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


#: Folder at which the service mounts buckets.
ROOT: Final = Path("/gcs")
#: Maximum total size of the copied buckets that a job does not name.
_MOST_BYTES: Final = 256 * 2**20
#: Maximum number of files in these buckets, and in a scanned ``/gcs`` of this machine.
_MOST_FILES: Final = 5_000
#: Maximum number of files that an error names.
_NAMED: Final = 3


class BucketCopies:
    """Copies of a job's buckets in ``folder``, which replaces ``/gcs``."""

    def __init__(
        self, folder: Path, cloud: CloudHost, access: Access, report: Callable[[str], None]
    ) -> None:
        self.folder, self.cloud, self.access, self.report = folder, cloud, access, report
        self._mounts: list[Mount] = []

    @property
    def copied(self) -> list[str]:
        return [mount.bucket for mount in self._mounts]

    def copy(self, bucket: str) -> None:
        """Copy a bucket into the folder."""
        mount = Mount(self.folder / bucket, self.cloud, self.access, self.report)
        mount.fill()
        self._mounts.append(mount)

    def sync(self) -> None:
        """Synchronize the folders with their buckets while the job runs."""
        for mount in self._mounts:
            mount.sync(final=False)

    def close(self) -> None:
        """Upload remaining files, and delete local copies that are complete in the bucket."""
        for mount in self._mounts:
            mount.sync(final=True)
            if not mount.refused:
                delete_folder(mount.folder)

    def outside(self) -> str:
        """Return the error for files below the folder but in no bucket; empty without such files.

        Read-only folders of buckets are empty, unless a container wrote to them.
        """
        if not (written := outside_of(self.folder, self.copied)):
            return ""
        return (
            f"The job wrote {_some(written)} below /gcs, but into no bucket: the bucket does not "
            "exist, the job's account may not use it, or a container does not name it. Hint: "
            "correct the name, grant roles/storage.objectUser, or pass the path as an argument."
        )


class JobBuckets(BucketCopies):
    """The buckets of a CustomJob."""

    view: BucketView | None = None
    """``/gcs`` of programs on this machine; None if their paths below ``/gcs`` are replaced."""
    _before: dict[str, tuple[int, int]] | None = None
    """Files of this machine's own ``/gcs`` before the job, if the job may write to them."""

    def prepare(self, members: Sequence[Replica], output_prefix: str | None) -> None:
        make_folder(self.folder)
        named, mentioned = _names(members, output_prefix)
        for bucket in sorted(named):
            if self.cloud.store.bucket(bucket) is None:
                self.report(f"/gcs/{bucket}: bucket {bucket} does not exist.")
            else:
                self.copy(bucket)
        if not hosts.has_mounts():
            self._before = _scan(ROOT, _MOST_FILES)
            return
        shown = self._show_others(named, mentioned)
        self.view = BucketView(
            self.folder,
            [bucket for bucket in self.copied if not self._may_write(bucket)],
            {bucket: self.cloud.home.storage / bucket for bucket in shown},
        )

    def lost(self) -> str:
        """Return the error for files outside of all buckets; empty without such files."""
        if self._before is not None and (now := _scan(ROOT, _MOST_FILES)) is not None:
            before = self._before
            if written := sorted(path for path in now if before.get(path) != now[path]):
                return (
                    f"The job wrote {_some(written)} to this machine, not into a bucket: the local "
                    "cloud replaces /gcs in command, args and env, but not in paths that the "
                    "job's code builds. Hint: read the path from an argument or an environment "
                    "variable, such as AIP_MODEL_DIR, or run the job in a container."
                )
        return self.outside()

    def _show_others(self, named: set[str], mentioned: set[str]) -> list[str]:
        """Copy small writable buckets, mentioned buckets first; return the other buckets."""
        shown: list[str] = []
        files, size = _MOST_FILES, _MOST_BYTES
        folders = sorted(path for path in self.cloud.home.storage.iterdir() if path.is_dir())
        for bucket in sorted((f.name for f in folders), key=lambda name: name not in mentioned):
            may_write = self._may_write(bucket)
            if bucket in named or not (may_write or self.access.may_read(bucket)):
                continue
            (self.folder / bucket).mkdir(exist_ok=True)
            if not may_write:
                shown.append(bucket)
                continue
            stamps = _scan(self.cloud.home.storage / bucket, files)
            if stamps is not None and (total := sum(s for _, s in stamps.values())) <= size:
                files, size = files - len(stamps), size - total
                self.copy(bucket)
                continue
            shown.append(bucket)
            self.report(
                f"/gcs/{bucket} is read-only here: the bucket is large and the job does not name "
                "the bucket. To write to the bucket, pass its path in an argument or an "
                "environment variable of the job."
            )
        return shown

    def _may_write(self, bucket: str) -> bool:
        return self.access.may_create(bucket) or self.access.may_change(bucket)


def _names(members: Sequence[Replica], output_prefix: str | None) -> tuple[set[str], set[str]]:
    """Return the buckets to copy, and the buckets that the job mentions in any form."""
    named: set[str] = set()
    mentioned: set[str] = set()
    for member in members:
        task = member.task
        named.update(environment.mounted_buckets(task))
        mentioned.update(environment.named_buckets(task, output_prefix))
        if registry_path(task.get("imageUri", "")):  # the image's code may contain mount paths
            named.update(environment.named_buckets(task, output_prefix))
    return named, mentioned


def outside_of(gcs: Path, buckets: Container[str]) -> list[str]:
    """Return files that a job wrote below ``/gcs`` but into no bucket, by their paths there."""
    paths: list[str] = []
    for entry in sorted(gcs.iterdir()):
        if entry.name in buckets or entry.name.startswith("."):
            continue
        folder = entry.is_dir() and not entry.is_symlink()
        below = entry.rglob("*") if folder else [entry]
        paths += [f"/gcs/{x.relative_to(gcs)}" for x in below if x.is_symlink() or x.is_file()]
    return sorted(paths)


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"{', '.join(paths[:_NAMED])}{more}"


def _scan(root: Path, most: int) -> dict[str, tuple[int, int]] | None:
    """Return change time and size of the files below a folder; None if there are too many."""
    stamps: dict[str, tuple[int, int]] = {}
    for folder, folders, names in os.walk(root):
        # Links to folders count as files.
        for name in (*names, *(x for x in folders if os.path.islink(os.path.join(folder, x)))):
            path = os.path.join(folder, name)
            try:
                stat = os.lstat(path)
            except OSError:  # The file was removed after the listing.
                continue
            stamps[path] = (stat.st_mtime_ns, stat.st_size)
            if len(stamps) > most:
                return None
    return stamps
