"""The replicas of a job, with loopback addresses, host names and a private ``/gcs`` for each.

Pools: 0 primary replica, 1 workers, 2 parameter servers or a reduction server, 3 evaluators
(doc:training/distributed-training). On Linux, all addresses of 127.0.0.0/8 are local, so all
replicas listen on the same port. On macOS, the replicas have different ports.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from localgcp.errors import CommandNotFoundError, RpcCode, StartRefusedError
from localgcp.runner import host_launcher
from localgcp.system.processes import succeeds

#: Port of every entry of CLUSTER_SPEC and TF_CONFIG (doc:training/distributed-training).
PORT: Final = 2222
#: Name of the primary replica.
PRIMARY: Final = "workerpool0-0"
#: Maximum number of replicas of one job, because each replica is a process with a framework.
MAX_REPLICAS: Final = 16
#: Memory of a replica without data (an interpreter with a framework), in bytes.
REPLICA_BYTES: Final = 256 * 1024**2

_REDUCTION_SERVER: Final = re.compile(r"vertex-ai-restricted/training/reductionserver(?::|@|$)")


@dataclass(frozen=True)
class Replica:
    """One replica: its pool, its index in the pool, and the pool's specification."""

    pool: int
    index: int
    spec: Mapping[str, Any]
    """The ``workerPoolSpec``, in the API's JSON form."""

    @property
    def name(self) -> str:
        return f"workerpool{self.pool}-{self.index}"

    @property
    def task(self) -> Mapping[str, Any]:
        """The ``containerSpec`` or ``pythonPackageSpec`` of the replica."""
        return self.spec.get("containerSpec") or self.spec.get("pythonPackageSpec") or {}


def replicas(spec: Mapping[str, Any]) -> list[Replica]:
    """Return all replicas of a job, the primary replica first.

    Raises StartRefusedError for replicas that this machine cannot run.
    """
    pools = [pool for pool in enumerate(spec.get("workerPoolSpecs", [])) if pool[1]]
    counts = {number: int(pool.get("replicaCount", 1)) for number, pool in pools}
    if (total := sum(counts.values())) > MAX_REPLICAS:
        raise _refused(
            f"the local cloud runs at most {MAX_REPLICAS} replicas of a job, and this job has "
            f"{total}. Rehearse the job with a lower replicaCount: one worker besides the primary "
            "suffices."
        )
    members = [Replica(number, i, pool) for number, pool in pools for i in range(counts[number])]
    for replica in members:
        if is_reduction_server(replica.task.get("imageUri", "")):
            raise _refused(
                f"{replica.name} is a reduction server, which reduces gradients of GPU workers; "
                "the local cloud has no GPUs. Rehearse the job without this pool: the result is "
                "the same."
            )
    return members


def is_reduction_server(image: str) -> bool:
    return bool(_REDUCTION_SERVER.search(image))


def check_memory(count: int, free_bytes: int) -> None:
    """Raise StartRefusedError if ``count`` replicas exceed this machine's free memory."""
    needed = count * REPLICA_BYTES
    if count > 1 and needed > free_bytes:
        raise _refused(
            f"{count} replicas need {needed >> 20} MiB of memory without data, and this machine "
            f"has {free_bytes >> 20} MiB free. Rehearse the job with a lower replicaCount, or end "
            "other programs."
        )


def cluster_of(members: Sequence[Replica], hosts: Mapping[str, Host]) -> dict[str, list[str]]:
    """Return ``HOST:PORT`` of each replica by pool; ``hosts`` maps names of replicas to hosts."""
    cluster: dict[str, list[str]] = {}
    for replica in members:
        cluster.setdefault(f"workerpool{replica.pool}", []).append(hosts[replica.name].entry)
    return cluster


def _refused(text: str) -> StartRefusedError:
    return StartRefusedError(RpcCode.FAILED_PRECONDITION, text)


_LAUNCH: Final = (sys.executable, "-I", "-S", host_launcher.__file__)
_ATTEMPTS: Final = 50
_CHECK_SECONDS: Final = 10.0
#: Second number of the addresses 127.N.x.y, far from 127.0.0.1 and other addresses in use.
_BLOCK: Final = 64


@dataclass(frozen=True)
class Host:
    """Loopback address and port of a replica, and its host name or None."""

    address: str
    port: int
    name: str | None = None

    @property
    def entry(self) -> str:
        """The address ``HOST:PORT``, as in CLUSTER_SPEC."""
        return f"{self.name or self.address}:{self.port}"


@dataclass(frozen=True)
class BucketView:
    """The ``/gcs`` of a program: a folder, with read-only parts."""

    folder: Path
    read_only: Sequence[str] = ()
    """Subfolders (buckets) that the program may not write to."""
    objects: Mapping[str, Path] = field(default_factory=dict[str, Path])
    """Bucket -> folder of its objects, mounted read-only at the bucket's empty subfolder."""

    def real_path(self, path: Path) -> Path:
        """Return the real path of a path in the program's view."""
        if path.parts[:2] != ("/", "gcs"):
            return path
        bucket, *rest = path.parts[2:] or ("",)
        return self.objects.get(bucket, self.folder / bucket).joinpath(*rest)


def choose(job_id: str, members: Sequence[Replica], *, named: bool) -> dict[str, Host]:
    """Return the hosts of a job's replicas by name; a single replica is ``localhost``.

    ``named``: all replicas are programs of this machine. Raises StartRefusedError without free
    ports.
    """
    if len(members) == 1:
        return {members[0].name: Host("127.0.0.1", PORT, "localhost")}
    if not _can_bind("127.64.0.1", 0):
        return {member.name: Host("127.0.0.1", _free_port()) for member in members}
    named = named and has_namespaces()
    tag = hashlib.sha256(job_id.encode()).hexdigest()[:10]
    for _ in range(_ATTEMPTS):
        block = f"127.{_BLOCK + secrets.randbelow(64)}.{secrets.randbelow(256)}"
        addresses = [f"{block}.{number}" for number in range(1, len(members) + 1)]
        if all(_can_bind(address, PORT) for address in addresses):
            return {
                replica.name: Host(address, PORT, host_name(replica, tag) if named else None)
                for replica, address in zip(members, addresses, strict=True)
            }
    raise _refused(f"port {PORT} is in use at the loopback addresses of this machine.")


def host_name(replica: Replica, tag: str) -> str:
    """Return a name like ``cmle-training-workerpool1-ab-0`` (doc:training/distributed-training)."""
    return f"cmle-training-workerpool{replica.pool}-{tag}-{replica.index}"


def write_hosts(path: Path, hosts: Mapping[str, Host]) -> None:
    """Write the ``/etc/hosts`` of a job: this machine's entries, then the replicas' entries."""
    try:
        own = Path("/etc/hosts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        own = "127.0.0.1 localhost\n"
    lines = [f"{host.address} {host.name}" for host in hosts.values() if host.name]
    path.write_text("\n".join([own.rstrip("\n"), *lines, ""]), encoding="utf-8")
    path.chmod(0o644)  # The program may run as another user.


def command_on(
    host: Host,
    hosts_file: Path,
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    work: Path,
    buckets: BucketView | None = None,
) -> list[str]:
    """Return the command line that runs ``argv`` in the folder ``work`` on a host.

    Raises CommandNotFoundError, which the launcher would report only after the start.
    """
    view: dict[str, Any] = {}
    if host.name not in (None, "localhost"):
        view["host"] = {"name": host.name, "hosts": str(hosts_file)}
    if buckets:
        root = work.with_name("root")
        root.mkdir(exist_ok=True)
        view["gcs"] = _as_view(buckets, root)
    if not view:
        return [*argv]
    _check_program(argv[0], env, work, buckets)
    return [*_LAUNCH, json.dumps(view), *argv]


def _as_view(buckets: BucketView, root: Path) -> dict[str, Any]:
    return {
        "root": str(root),
        "folder": str(buckets.folder),
        "read_only": list(buckets.read_only),
        "objects": {name: str(folder) for name, folder in buckets.objects.items()},
    }


def _check_program(
    name: str, env: Mapping[str, str], work: Path, buckets: BucketView | None
) -> None:
    number = 0
    if os.sep in name:
        path = work / name
        path = buckets.real_path(path) if buckets else path
        if not path.exists():
            number = errno.ENOENT
        elif path.is_dir() or not os.access(path, os.X_OK):
            number = errno.EACCES
    elif shutil.which(name, path=env.get("PATH")) is None:
        number = errno.ENOENT
    if number:
        code = 127 if number == errno.ENOENT else 126
        raise CommandNotFoundError(f"{name}: {os.strerror(number)}", code=code)


@cache
def has_namespaces() -> bool:
    """Return whether this system supports a private host name and ``/etc/hosts`` for a process."""
    return _can_launch({"host": {"name": "replica-0", "hosts": "/etc/hosts"}})


@cache
def has_mounts() -> bool:
    """Return whether this system supports a private ``/gcs`` for a process."""
    if sys.platform != "linux":
        return False
    with tempfile.TemporaryDirectory() as base:
        root, gcs, objects = (Path(base, name) for name in ("root", "gcs", "objects"))
        for folder in (root, gcs / "a", gcs / "b", objects):
            folder.mkdir(parents=True)
        return _can_launch({"gcs": _as_view(BucketView(gcs, ["a"], {"b": objects}), root)})


def _can_launch(view: Mapping[str, Any]) -> bool:
    if sys.platform != "linux":
        return False
    return succeeds([*_LAUNCH, json.dumps(view), "true"], _CHECK_SECONDS)


def _can_bind(address: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
