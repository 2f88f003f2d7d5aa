"""GPUs that a job's replicas request, and GPUs that the replicas get."""

from __future__ import annotations

import enum
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from localgcp.home import Home, cache_dir, open_private
from localgcp.runner.hosts import Replica
from localgcp.system import gpus
from localgcp.system.gpus import Gpu

#: Seconds for which waiting jobs use the same list of GPUs.
_RECENT_SECONDS: Final = 2.0
#: Words in an accelerator's name that are not part of its model.
_NO_MODEL: Final = re.compile(r"NVIDIA|TESLA|MEGA|\d+GB")


class GpuShortage(enum.StrEnum):
    """Behavior of jobs that request more GPUs than are free."""

    AUTO = enum.auto()
    """The job waits for GPUs of other jobs, and runs on CPUs if the machine has too few GPUs."""
    WAIT = enum.auto()
    """The job always waits for GPUs."""
    CPU = enum.auto()
    """The job never waits and runs on CPUs."""

    @classmethod
    def of(cls, home: Home) -> GpuShortage:
        """Return the saved choice; AUTO if no choice is saved."""
        try:
            return cls(home.gpu_shortage.read_text("utf-8"))
        except (OSError, ValueError):
            return cls.AUTO

    def keep(self, home: Home) -> None:
        """Save the choice for jobs that start later."""
        with open_private(home.gpu_shortage, "w") as file:
            file.write(self.value)


@dataclass(frozen=True)
class Allotment:
    """Reserved GPUs of the replicas of a job; ``close`` releases the GPUs."""

    by_replica: Mapping[str, Sequence[Gpu]] = field(default_factory=dict[str, Sequence[Gpu]])
    locks: dict[Gpu, int] = field(default_factory=dict[Gpu, int])
    """File descriptor of the lock, by GPU."""
    note: str = ""
    """Description of hardware that differs from the request; empty without a difference."""

    def of(self, replica: str) -> tuple[Gpu, ...]:
        return (*self.by_replica.get(replica, ()),)

    def descriptors(self, replica: str) -> tuple[int, ...]:
        """Return the locks on GPUs that the program of a replica inherits."""
        return tuple(self.locks[gpu] for gpu in self.of(replica))

    def close(self) -> None:
        """Release the GPUs; a second call has no effect."""
        while self.locks:
            os.close(self.locks.popitem()[1])


def allot(members: Sequence[Replica], shortage: GpuShortage, *, waited: bool) -> Allotment | str:
    """Return the GPUs of a job, or the reason to wait; ``waited``: a recent GPU list suffices."""
    request = describe_request(members)
    if not request:
        return Allotment()
    period = int(time.monotonic() / _RECENT_SECONDS)
    available = gpus.list_recent(period) if waited else gpus.list_gpus()
    if too_few := divide(members, available) is None:
        reason = f"this machine has {describe(available)}"
    else:
        # All local clouds of this user share the locks.
        runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"
        base = Path(runtime) if os.path.isdir(runtime) else cache_dir()
        with gpus.free(available, base / "vertex-training-gpus") as locks:
            if divided := divide(members, [*locks]):
                used = [gpu for of_replica in divided.values() for gpu in of_replica]
                held = {gpu: locks.pop(gpu) for gpu in used}
                return Allotment(divided, held, difference(members, used))
            reason = f"{len(locks)} of {len(available)} GPUs of this machine are free"
    if shortage is GpuShortage.WAIT or (shortage is GpuShortage.AUTO and not too_few):
        return f"{reason}, and the job requests {request}"
    return Allotment(note=f"on CPUs, not on {request}: {reason}")


def divide(members: Sequence[Replica], available: Sequence[Gpu]) -> dict[str, list[Gpu]] | None:
    """Divide GPUs among replicas; None if there are too few.

    CUDA gives a process at most one MIG device, so parts of a GPU serve replicas with one GPU.
    """
    parts = [gpu for gpu in available if gpu.part is not None]
    whole = [gpu for gpu in available if gpu.part is None]
    divided: dict[str, list[Gpu]] = {}
    for member in sorted(members, key=requested, reverse=True):
        number = requested(member)
        source = parts if number == 1 and parts else whole
        if len(source) < number:
            return None
        divided[member.name] = [source.pop(0) for _ in range(number)]
    return divided


def requested(member: Replica) -> int:
    """Return the number of GPUs that a replica requests. TPUs do not count."""
    machine: Mapping[str, Any] = member.spec.get("machineSpec", {})
    is_tpu = machine.get("acceleratorType", "").startswith("TPU")
    return 0 if is_tpu else int(machine.get("acceleratorCount", 0))


def describe_request(members: Sequence[Replica]) -> str:
    """Return the total of the replicas' GPU requests, like ``8 NVIDIA_L4``; empty without GPUs."""
    names = [name for member in members for name in [_accelerator(member)] * requested(member)]
    return _counted(names)


def describe(available: Sequence[Gpu]) -> str:
    """Return GPUs by name, like ``2 NVIDIA L4``."""
    return _counted(gpu.name for gpu in available) or "no GPU"


def difference(members: Sequence[Replica], used: Sequence[Gpu]) -> str:
    """Return a note if the GPUs are not of the requested model; otherwise an empty text."""
    names = {_accelerator(member) for member in members if requested(member)}
    models = [{word for word in name.split("_") if not _NO_MODEL.fullmatch(word)} for name in names]
    words = [set(re.split(r"\W+", gpu.name.upper())) for gpu in used if gpu.part is None]
    if len(words) == len(used) and all(model <= name for model in models for name in words):
        return ""
    return f"on {describe(used)}, not on {describe_request(members)}"


def _accelerator(member: Replica) -> str:
    return str(member.spec.get("machineSpec", {}).get("acceleratorType", "GPU"))


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in Counter(names).items())
