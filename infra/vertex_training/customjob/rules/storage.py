"""Rules about output directories, packages and mounted file systems."""

import ipaddress
import re
from collections.abc import Iterator
from typing import Any, Final

from vertex_training.customjob.rules.job import Job, Pool, pools_of
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, Findings, rule
from vertex_training.errors import Path

#: https://docs.cloud.google.com/storage/docs/buckets#naming
BUCKET: Final = r"gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]"
FOLDER_URI: Final = re.compile(BUCKET + r"(/.*)?\Z")
OBJECT_URI: Final = re.compile(BUCKET + r"/.+\Z")
MAX_PACKAGES: Final = 100
OUTPUT: Final[Path] = ("jobSpec", "baseOutputDirectory", "outputUriPrefix")


@rule("output-directory", TYPES + "io.py")
def output_directory(job: Job) -> Findings:
    """Check that baseOutputDirectory is a folder in Cloud Storage."""
    directory = job.spec.get("baseOutputDirectory")
    if directory is None:
        return
    prefix = directory.get("outputUriPrefix")
    if prefix is None:
        hint = "write outputUriPrefix: ${buckets.NAME}/folder"
        what = "outputUriPrefix is missing"
        yield Finding(OUTPUT[:-1], what, "", hint, missing="outputUriPrefix")
    elif not FOLDER_URI.match(prefix):
        what = "the output directory must be a folder in a bucket"
        if not prefix.startswith("gs://"):
            what = "the output directory must begin with gs://"
        yield Finding(OUTPUT, what, prefix, "write ${buckets.NAME}/folder")


@rule("package-uri", TYPES + "custom_job.py", of=pools_of)
def package_uri(pool: Pool) -> Findings:
    """Check that a package is an object in Cloud Storage."""
    for index, uri in enumerate(pool.task.get("packageUris", [])):
        if not OBJECT_URI.match(uri):
            path = (*pool.task_path, "packageUris", index)
            what = "a package must be the URI of an object"
            if not uri.startswith("gs://"):
                what = "the URI of a package must begin with gs://"
            yield Finding(path, what, uri, "write ${packages.NAME}")


@rule("package-count", TYPES + "custom_job.py", of=pools_of)
def package_count(pool: Pool) -> Findings:
    """Check that a pool has at most 100 packages."""
    count = len(pool.task.get("packageUris", []))
    if count > MAX_PACKAGES:
        path = (*pool.task_path, "packageUris")
        hint = "combine packages, or install them in an image"
        what = f"a pool can have at most {MAX_PACKAGES} packages"
        yield Finding(path, what, str(count), hint)


@rule("package-needs", TYPES + "custom_job.py")
def package_needs(job: Job) -> Findings:
    """Check that a pythonPackageSpec has package URIs, a module and a prebuilt image."""
    hints = {
        "executorImageUri": "write the name of a prebuilt training image",
        "packageUris": 'write ["${packages.NAME}"]',
        "pythonModule": "write a module such as titanic.task",
    }
    for pool in job.pools:
        for field, hint in hints.items():
            if pool.task_name == "pythonPackageSpec" and not pool.task.get(field):
                yield Finding(pool.task_path, f"{field} is missing", "", hint, missing=field)


@rule("python-module", TYPES + "custom_job.py", of=pools_of)
def python_module(pool: Pool) -> Findings:
    """Check that a pythonModule is a dotted module name."""
    module = pool.task.get("pythonModule")
    if module and not all(part.isidentifier() for part in module.split(".")):
        hint = f"write {module.removesuffix('.py').replace('/', '.') or 'titanic.task'}"
        path = (*pool.task_path, "pythonModule")
        yield Finding(path, "pythonModule must be a dotted module name", module, hint)


@rule("mount-path", GUIDES + "training/cloud-storage-file-system", of=pools_of)
def mount_path(pool: Pool) -> Findings:
    """Check that the path of a mounted bucket is /gcs/BUCKET, without gs://."""
    for path, text in pool.texts():
        if "/gcs/gs:" in text:
            hint = "write ${buckets.NAME.mount} for the folder, or ${buckets.NAME} for the URI"
            yield Finding(path, "a path below /gcs/ must not have a URI", text, hint)


RESOURCES: Final = TYPES + "machine_resources.py"
#: Field with mounts -> required fields of a mount, with examples. The first field is the address.
NEEDS: Final = {
    "nfsMounts": {"server": "10.0.0.2", "path": "/export", "mountPoint": "data"},
    "lustreMounts": {
        "instanceIp": "10.0.0.2",
        "volumeHandle": "VOLUME",
        "filesystem": "FILE_SYSTEM",
        "mountPoint": "data",
    },
}


def _mounts(job: Job) -> Iterator[tuple[str, dict[str, Any], Path]]:
    for pool in job.pools:
        for kind in NEEDS:
            for index, mount in enumerate(pool.spec.get(kind, [])):
                yield kind, mount, (*pool.path, kind, index)


@rule("mount-needs", RESOURCES, of=_mounts)
def mount_needs(kind: str, mount: dict[str, Any], path: Path) -> Findings:
    """Check that a mount has a file system and a mount point."""
    for field, example in NEEDS[kind].items():
        if not mount.get(field):
            hint = f"write {field}: {example}, for example"
            yield Finding(path, f"{field} is missing", "", hint, field)


@rule("mount-source", RESOURCES, of=_mounts)
def mount_source(_kind: str, mount: dict[str, Any], path: Path) -> Findings:
    """Check that the exported path of an NFS server begins with a slash."""
    source = mount.get("path")
    if source and not source.startswith("/"):
        what = "the exported path must begin with /"
        yield Finding((*path, "path"), what, source, f"write /{source}")


@rule("mount-address", RESOURCES, of=_mounts)
def mount_address(kind: str, mount: dict[str, Any], path: Path) -> Findings:
    """Check that the server of a file system is an IP address."""
    field = next(iter(NEEDS[kind]))
    address = mount.get(field, "")
    try:
        ipaddress.ip_address(address or "10.0.0.1")
    except ValueError:
        hint = "write the server's private address, such as 10.0.0.2"
        what = f"{field} must be an IP address"
        yield Finding((*path, field), what, address, hint)


@rule("mount-network", GUIDES + "training/train-nfs-share")
def mount_network(job: Job) -> Findings:
    """Check that a job that mounts a file system has access to the server's network."""
    if job.network or "pscInterfaceConfig" in job.spec:
        return
    for _kind, _mount, path in _mounts(job):
        what = "the job cannot reach the server without network or pscInterfaceConfig"
        hint = f"add network: projects/NUMBER/global/networks/NAME to {job.kind.spec}"
        yield Finding(path, what, "", hint)
