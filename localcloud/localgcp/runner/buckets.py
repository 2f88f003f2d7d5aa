"""The buckets of one job below ``/gcs``, and files that the job wrote outside of them.

On the service every bucket that a job's account may use is there, and code makes such paths as it
runs. Where this system gives a process a ``/gcs`` of its own, it is so here: buckets that the job
may write to are copied, unless they are large and it does not name them; all others are shown
read-only as they are. Where not, and in containers, there are those that the job names.

A file that is in no bucket fails its job, whose output would be lost. Where a job has no ``/gcs``
of its own, a path that code makes leads to this machine's: what is new there is the job's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from localgcp.containers.engines import registry_path
from localgcp.runner import environment
from localgcp.runner.gang import hosts
from localgcp.runner.gang.cluster import Replica
from localgcp.runner.gang.hosts import BucketView
from localgcp.runner.gcsfuse import Mount
from localgcp.runner.programs import CloudHost
from localgcp.system.root_directory import delete_folder, make_folder
from localgcp.vertex.admission import Access

#: Maximum size and number of files of the copied buckets that a job does not name, in all.
_MOST_BYTES: Final = 256 * 2**20
_MOST_FILES: Final = 5_000


@dataclass
class JobBuckets:
    """Buckets below ``folder``, which replaces ``/gcs``."""

    folder: Path
    cloud: CloudHost
    access: Access
    report: Callable[[str], None]
    view: BucketView | None = None
    """``/gcs`` of programs on this machine; None if their paths below ``/gcs`` are replaced."""
    _mounts: list[Mount] = field(default_factory=list[Mount])
    _watch: RootWatch | None = None

    def prepare(self, members: Sequence[Replica], output_prefix: str | None) -> None:
        """Prepare the buckets for these replicas."""
        make_folder(self.folder)
        named, mentioned = _names(members, output_prefix)
        for bucket in sorted(named):
            if self.cloud.store.bucket(bucket) is None:
                self.report(f"/gcs/{bucket}: bucket {bucket} does not exist.")
            else:
                self._copy(bucket)
        if not hosts.has_mounts():
            self._watch = RootWatch()
            return
        shown = self._show_others(named, mentioned)
        copied = [mount.bucket for mount in self._mounts]
        self.view = BucketView(
            self.folder,
            [bucket for bucket in copied if not self._may_write(bucket)],
            {bucket: self.cloud.home.storage / bucket for bucket in shown},
        )

    def sync(self) -> None:
        """Synchronize folders and buckets while the job runs."""
        for mount in self._mounts:
            mount.sync(final=False)

    def lost(self) -> str:
        """Return the error for files that the job wrote outside of all buckets; empty without such
        files.
        """
        if self._watch and (written := self._watch.written()):
            return explain(written)
        # Folders of buckets that are shown read-only are empty, unless a container wrote there.
        outside = outside_of(self.folder, {mount.bucket for mount in self._mounts})
        return explain_outside(outside) if outside else ""

    def close(self) -> None:
        """Upload remaining files, and delete local copies that are complete in the bucket."""
        for mount in self._mounts:
            mount.sync(final=True)
            if not mount.refused:
                delete_folder(mount.folder)

    def _show_others(self, named: set[str], mentioned: set[str]) -> list[str]:
        """Copy small writable buckets; return the buckets to mount read-only.

        Those that the job mentions go first.
        """
        shown: list[str] = []
        files, size = _MOST_FILES, _MOST_BYTES
        for bucket in sorted(self._usable(named), key=lambda name: name not in mentioned):
            (self.folder / bucket).mkdir(exist_ok=True)
            if not self._may_write(bucket):
                shown.append(bucket)
                continue
            measured = _measure(self.cloud.home.storage / bucket, files, size)
            if measured:
                files, size = files - measured[0], size - measured[1]
                self._copy(bucket)
                continue
            shown.append(bucket)
            text = (
                f"/gcs/{bucket} is read-only here: the bucket is large and the job does not name "
                "it."
            )
            self.report(
                f"{text} To write to it, pass the path in an argument or an environment variable "
                "of the job."
            )
        return shown

    def _usable(self, named: set[str]) -> Iterator[str]:
        for folder in sorted(self.cloud.home.storage.iterdir()):
            bucket = folder.name
            if bucket not in named and folder.is_dir() and self._may_use(bucket):
                yield bucket

    def _may_use(self, bucket: str) -> bool:
        return self.access.may_read(bucket) or self._may_write(bucket)

    def _may_write(self, bucket: str) -> bool:
        return self.access.may_create(bucket) or self.access.may_change(bucket)

    def _copy(self, bucket: str) -> None:
        mount = Mount(self.folder / bucket, self.cloud, self.access, self.report)
        mount.fill()
        self._mounts.append(mount)


def _names(members: Sequence[Replica], output_prefix: str | None) -> tuple[set[str], set[str]]:
    """Return buckets to copy, and buckets that the job mentions in any form."""
    named: set[str] = set()
    mentioned: set[str] = set()
    for member in members:
        task = member.task
        named.update(environment.mounted_buckets(task))
        mentioned.update(environment.named_buckets(task, output_prefix))
        if registry_path(task.get("imageUri", "")):  # its code may name the mount itself
            named.update(environment.named_buckets(task, output_prefix))
    return named, mentioned


def _measure(folder: Path, most_files: int, most_bytes: int) -> tuple[int, int] | None:
    """Return number and size of the files below a folder; None if they exceed a limit."""
    files = size = 0
    for above, _, names in os.walk(folder):
        for name in names:
            files += 1
            try:
                size += os.lstat(os.path.join(above, name)).st_size
            except FileNotFoundError:  # deleted since it was listed
                continue
            if files > most_files or size > most_bytes:
                return None
    return files, size


#: Folder at which the service mounts buckets.
ROOT: Final = Path("/gcs")
#: Maximum number of scanned files: with more, another file system is probably mounted there.
_MOST: Final = 5_000
_NAMED: Final = 3


class RootWatch:
    """Snapshot of the files below ``root``, compared at the end of a job."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = ROOT if root is None else root
        self._before = _scan(self._root)

    def written(self) -> list[str]:
        """Return new or changed files, sorted; empty if the folder has too many files to scan."""
        now = _scan(self._root)
        if self._before is None or now is None:
            return []
        return sorted(path for path, stamp in now.items() if self._before.get(path) != stamp)


def outside_of(gcs: Path, buckets: Container[str]) -> list[str]:
    """Return files in the replacement of ``/gcs`` that are in no bucket, by their paths in the job.

    Names that begin with a dot are no buckets: what the local cloud itself puts there.
    """
    paths: list[str] = []
    for entry in sorted(gcs.iterdir()):
        if entry.name in buckets or entry.name.startswith("."):
            continue
        folder = entry.is_dir() and not entry.is_symlink()
        below = entry.rglob("*") if folder else [entry]
        paths += [f"/gcs/{x.relative_to(gcs)}" for x in below if x.is_symlink() or x.is_file()]
    return sorted(paths)


def explain_outside(written: list[str]) -> str:
    """Return the error of a job that wrote these files below ``/gcs`` but not into a bucket."""
    return (
        f"The job wrote {_some(written)} below /gcs, but into no bucket: the bucket does not "
        "exist, the job's account may not use it, or a container does not name it. Hint: correct "
        "the name, grant roles/storage.objectUser, or pass the path as an argument."
    )


def explain(written: list[str]) -> str:
    """Return the error of a job that wrote these files to this machine's own ``/gcs``."""
    return (
        f"The job wrote {_some(written)} to this machine, not into a bucket: the local cloud "
        "replaces /gcs in command, args and env, but not in paths that the job's code builds. "
        "Hint: read the path from an argument or an environment variable, such as AIP_MODEL_DIR, "
        "or run the job "
        "in a container."
    )


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"{', '.join(paths[:_NAMED])}{more}"


def _scan(root: Path) -> dict[str, tuple[int, int]] | None:
    """Return change time and size of the files below ``root``, by path; None above a limit."""
    stamps: dict[str, tuple[int, int]] = {}
    for folder, folders, names in os.walk(root):
        # A link to a folder is no folder here.
        for name in (*names, *(x for x in folders if os.path.islink(os.path.join(folder, x)))):
            path = os.path.join(folder, name)
            try:
                stat = os.lstat(path)
            except OSError:  # removed since it was listed
                continue
            stamps[path] = (stat.st_mtime_ns, stat.st_size)
            if len(stamps) > _MOST:
                return None
    return stamps
