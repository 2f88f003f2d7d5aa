"""The buckets that one Batch job mounts, by mount path.

A runnable in a container finds volumes where ``container.volumes`` puts them, or else at their
``mountPath``. Containers have them there. A program of this machine has those below ``/gcs`` there,
where the system allows it; all other paths are replaced in its words, variables and script by the
folders that stand for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from localgcp.batch.records import BatchJob
from localgcp.containers.engines import MOUNT
from localgcp.errors import PreparationError
from localgcp.runner import buckets
from localgcp.runner.gang import hosts
from localgcp.runner.gang.hosts import BucketView
from localgcp.runner.gcsfuse import Mount
from localgcp.runner.programs import CloudHost
from localgcp.system.root_directory import delete_folder, make_folder
from localgcp.vertex.admission import Access

#: File on a machine that lists all machines (doc:batch/…, requireHostsFile).
HOSTS_FILE: Final = "/etc/cloudbatch-taskgroup-hosts"


class Volumes:
    """Folders of all buckets that a job mounts; its tasks share them."""

    def __init__(self, job: BatchJob, cloud: CloudHost, report: Callable[[str], None]) -> None:
        self.root = cloud.home.batch / job.uid / "gcs"
        self.hosts_file = cloud.home.batch / job.uid / "hosts"
        self._cloud, self._report = cloud, report
        self._access = Access(cloud.store, job.project, job.account)
        self._at = {
            volume["mountPath"].rstrip("/"): volume["gcs"]["remotePath"].strip("/")
            for volume in job.spec.get("volumes", [])
        }
        self._mounts: list[Mount] = []

    def prepare(self) -> None:
        """Copy the buckets into folders. Raises PreparationError if a bucket cannot be mounted."""
        make_folder(self.root)
        for remote in dict.fromkeys(self._at.values()):
            bucket = remote.partition("/")[0]
            if self._cloud.store.bucket(bucket) is None:
                raise PreparationError(
                    f"gs://{bucket} cannot be mounted: the bucket does not exist."
                )
            if not self._access.may_read(bucket):
                raise PreparationError(
                    f"gs://{bucket} cannot be mounted: {self._access.account} does not have "
                    "storage.objects.list access. Grant roles/storage.objectUser on the bucket."
                )
            if bucket not in (mount.bucket for mount in self._mounts):
                mount = Mount(self.root / bucket, self._cloud, self._access, self._report)
                mount.fill()
                self._mounts.append(mount)
            make_folder(self.root / remote)

    def sync(self) -> None:
        """Synchronize folders and buckets while the job runs."""
        for mount in self._mounts:
            mount.sync(final=False)

    def close(self) -> None:
        """Upload remaining files, and log files that the job wrote outside of all buckets."""
        if self.root.is_dir():
            kept = {mount.bucket for mount in self._mounts}
            if outside := buckets.outside_of(self.root, kept):
                self._report(buckets.explain_outside(outside))
        for mount in self._mounts:
            mount.sync(final=True)
            if not mount.refused:
                delete_folder(mount.folder)

    def of(self, container: Mapping[str, Any] | None) -> dict[str, Path]:
        """Return a container's mounts by path; for a script (None), all mounts of the job."""
        on_machine = {path: self.root / remote for path, remote in self._at.items()}
        if self.hosts_file.is_file():
            on_machine[HOSTS_FILE] = self.hosts_file
        if container is None:
            return on_machine
        if not container.get("volumes"):
            return {path: at for path, at in on_machine.items() if path != HOSTS_FILE}
        return dict(self._named(container["volumes"], on_machine))

    def _named(
        self, volumes: list[str], on_machine: Mapping[str, Path]
    ) -> Iterator[tuple[str, Path]]:
        for volume in volumes:
            source, _, rest = volume.partition(":")
            target = rest.partition(":")[0].rstrip("/") or source
            above = [path for path in on_machine if f"{source}/".startswith(f"{path}/")]
            if not above or ".." in source.split("/"):
                self._report(
                    f"volume {volume} is ignored: {source} does not exist on this machine."
                )
                continue
            path = max(above, key=len)
            path_here = on_machine[path] / source.removeprefix(path).strip("/")
            if path_here == self.hosts_file or path_here.resolve().is_relative_to(
                self.root.resolve()
            ):
                yield target, path_here

    def view(self, at: Mapping[str, Path]) -> BucketView | None:
        """Return the program's ``/gcs``; None if mount paths in texts are replaced instead."""
        if not hosts.has_mounts() or not any(self.is_gcs(*mount) for mount in at.items()):
            return None
        fixed = [m.bucket for m in self._mounts if not self._access.may_create(m.bucket)]
        return BucketView(self.root, fixed)

    def placed(self, text: str, at: Mapping[str, Path], view: BucketView | None) -> str:
        """Return the text with mount paths replaced by folders of this machine."""
        for path in sorted(at, key=len, reverse=True):
            if view is None or not self.is_gcs(path, at[path]):
                pattern = rf"(?<![\w./-]){re.escape(path)}(?![\w.-])"
                text = re.sub(pattern, lambda _, path=path: str(at[path]), text)
        return text

    def is_gcs(self, path: str, at: Path) -> bool:
        """Return whether the mount is a bucket below ``/gcs``."""
        return at.parent == self.root and path == f"{MOUNT}/{at.name}"

    def gcs(self, at: Mapping[str, Path], empty: Path) -> Path:
        """Return the container's folder for ``/gcs``; an empty folder if no mount is below
        ``/gcs``.
        """
        if any(self.is_gcs(*mount) for mount in at.items()):
            return self.root
        empty.mkdir(exist_ok=True)
        return empty
