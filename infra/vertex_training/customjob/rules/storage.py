"""Rules for the output directory, packages and mounted file systems of a job."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any, Final

from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, rule
from vertex_training.errors import Path

#: https://docs.cloud.google.com/storage/docs/buckets#naming
BUCKET: Final = r"gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]"
FOLDER_URI: Final = re.compile(BUCKET + r"(/.*)?\Z")
OBJECT_URI: Final = re.compile(BUCKET + r"/.+\Z")
MAX_PACKAGES: Final = 100
OUTPUT: Final[Path] = ("jobSpec", "baseOutputDirectory", "outputUriPrefix")


@rule("output-directory", TYPES + "io.py")
def output_directory(job: Job) -> Iterator[Finding]:
    """baseOutputDirectory is a folder in Cloud Storage."""
    directory = job.spec.get("baseOutputDirectory")
    if directory is None:
        return
    prefix = directory.get("outputUriPrefix")
    if prefix is None:
        hint = "outputUriPrefix: ${buckets.NAME}/folder"
        what = "outputUriPrefix is missing"
        yield Finding(OUTPUT[:-1], what, "", hint, missing="outputUriPrefix")
    elif not FOLDER_URI.match(prefix):
        what = "must be gs://, a bucket's name, and a folder"
        if not prefix.startswith("gs://"):
            what = "must begin with gs://"
        yield Finding(OUTPUT, what, prefix, "${buckets.NAME}/folder")


@rule("package-uri", TYPES + "custom_job.py")
def package_uri(job: Job) -> Iterator[Finding]:
    """Packages are objects in Cloud Storage."""
    for pool in job.pools:
        for index, uri in enumerate(pool.task.get("packageUris", [])):
            if not OBJECT_URI.match(uri):
                path = (*pool.task_path, "packageUris", index)
                starts = uri.startswith("gs://")
                what = "must name a bucket and an object" if starts else "must begin with gs://"
                yield Finding(path, what, uri, "${packages.NAME}")


@rule("package-count", TYPES + "custom_job.py")
def package_count(job: Job) -> Iterator[Finding]:
    """A pool has at most 100 packages."""
    for pool in job.pools:
        count = len(pool.task.get("packageUris", []))
        if count > MAX_PACKAGES:
            path = (*pool.task_path, "packageUris")
            hint = "put several packages into one, or into an image"
            yield Finding(path, f"has more than {MAX_PACKAGES} items", str(count), hint)


@rule("package-needs", TYPES + "custom_job.py")
def package_needs(job: Job) -> Iterator[Finding]:
    """A package has its URIs, a module to run, and a prebuilt image to run in."""
    hints = {
        "executorImageUri": "a prebuilt image of Google's",
        "packageUris": '["${packages.NAME}"]',
        "pythonModule": "for example titanic.task",
    }
    for pool in job.pools:
        for field, hint in hints.items():
            if pool.task_name == "pythonPackageSpec" and not pool.task.get(field):
                yield Finding(pool.task_path, f"{field} is missing", "", hint, missing=field)


@rule("python-module", TYPES + "custom_job.py")
def python_module(job: Job) -> Iterator[Finding]:
    """The module of a package is written as Python imports it."""
    for pool in job.pools:
        module = pool.task.get("pythonModule")
        if module and not all(part.isidentifier() for part in module.split(".")):
            hint = f"for example {module.removesuffix('.py').replace('/', '.') or 'titanic.task'}"
            path = (*pool.task_path, "pythonModule")
            yield Finding(path, "not the name of a module", module, hint)


@rule("mount-path", GUIDES + "training/cloud-storage-file-system")
def mount_path(job: Job) -> Iterator[Finding]:
    """Mounted buckets are /gcs/BUCKET, without gs://."""
    for pool in job.pools:
        for path, text in pool.texts():
            if "/gcs/gs:" in text:
                hint = "${buckets.NAME.mount} is the folder, ${buckets.NAME} the URI"
                yield Finding(path, "a URI behind /gcs/", text, hint)


RESOURCES: Final = TYPES + "machine_resources.py"
NEEDS: Final = {
    "nfsMounts": ("server", "path", "mountPoint"),
    "lustreMounts": ("instanceIp", "volumeHandle", "filesystem", "mountPoint"),
}
EXAMPLES: Final = {
    "server": "10.0.0.2",
    "path": "/export",
    "mountPoint": "data",
    "instanceIp": "10.0.0.2",
    "volumeHandle": "the volume's unique name",
    "filesystem": "the file system's name",
}
ADDRESS: Final = {"nfsMounts": "server", "lustreMounts": "instanceIp"}


def _mounts(job: Job) -> Iterator[tuple[str, dict[str, Any], Path]]:
    for pool in job.pools:
        for kind in NEEDS:
            for index, mount in enumerate(pool.spec.get(kind, [])):
                yield kind, mount, (*pool.path, kind, index)


@rule("mount-needs", RESOURCES)
def mount_needs(job: Job) -> Iterator[Finding]:
    """A mount says where the file system is and where it appears."""
    for kind, mount, path in _mounts(job):
        for field in NEEDS[kind]:
            if not mount.get(field):
                yield Finding(path, f"{field} is missing", "", f"{field}: {EXAMPLES[field]}", field)


@rule("mount-source", RESOURCES)
def mount_source(job: Job) -> Iterator[Finding]:
    """The path an NFS server exports begins with a slash."""
    for _, mount, path in _mounts(job):
        source = mount.get("path")
        if source and not source.startswith("/"):
            yield Finding((*path, "path"), "must begin with /", source, f"/{source}")


@rule("mount-address", RESOURCES)
def mount_address(job: Job) -> Iterator[Finding]:
    """A file system's server is given by its IP address."""
    for kind, mount, path in _mounts(job):
        address = mount.get(ADDRESS[kind], "")
        try:
            ipaddress.ip_address(address or "10.0.0.1")
        except ValueError:
            hint = "the private address of the server, like 10.0.0.2"
            yield Finding((*path, ADDRESS[kind]), "must be an IP address", address, hint)


@rule("mount-network", GUIDES + "training/train-nfs-share")
def mount_network(job: Job) -> Iterator[Finding]:
    """A job that mounts a file system is in the network where it is."""
    if job.network or "pscInterfaceConfig" in job.spec:
        return
    for _kind, _mount, path in _mounts(job):
        what = "neither network nor pscInterfaceConfig is given: the server cannot be reached"
        hint = f"network: projects/NUMBER/global/networks/NAME in {job.kind.spec}"
        yield Finding(path, what, "", hint)
