"""File systems that a job mounts."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any, Final

from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, rule
from vertex_training.errors import Path

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
