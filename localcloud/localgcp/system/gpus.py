"""List the GPUs of this machine, and lock GPUs so that two jobs never use the same GPU."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from localgcp.system.processes import run_quietly

#: Variable that limits a program to some GPUs, by UUIDs or numbers.
VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
#: Variable that makes CUDA number GPUs as nvidia-smi does.
ORDER: Final = "CUDA_DEVICE_ORDER"

_GPU: Final = re.compile(r"GPU (\d+): (.*?) *\(UUID: ([^)]+)\)")
_MIG: Final = re.compile(r"\s+(MIG \S+) +Device +(\d+): \(UUID: ([^)]+)\)")


@dataclass(frozen=True)
class Gpu:
    """A GPU, or a part of a GPU (MIG device)."""

    id: str
    """The UUID for ``CUDA_VISIBLE_DEVICES``, or a number without nvidia-smi."""
    name: str = "GPU"
    number: int = 0
    """Number of the GPU in nvidia-smi."""
    part: int | None = None
    """Number of the MIG device in its GPU. A CUDA process can use at most one MIG device."""

    @property
    def cdi_name(self) -> str:
        """Return the name of the GPU among the devices of ``nvidia.com/gpu``."""
        return f"{self.number}" if self.part is None else f"{self.number}:{self.part}"


def list_gpus(env: Mapping[str, str] | None = None, devices: Path = Path("/dev")) -> list[Gpu]:
    """Return the GPUs that nvidia-smi lists, or else a GPU for each device file."""
    env = os.environ if env is None else env
    if program := shutil.which("nvidia-smi", path=env.get("PATH")):
        # If a GPU does not answer, the output ends before this GPU.
        listed = run_quietly([program, "-L"], 20.0)
        return visible(_parse(listed.stdout if listed else ""), env.get(VISIBLE))
    try:
        files = [path for path in devices.iterdir() if re.fullmatch(r"nvidia\d+", path.name)]
    except OSError:
        files = []
    # CUDA numbers GPUs from 0, unlike the device files.
    gpus = [Gpu(str(number), number=number) for number in range(len(files))]
    return visible(gpus, env.get(VISIBLE))


@lru_cache(maxsize=1)
def list_recent(_period: int) -> list[Gpu]:
    """Return the GPUs, listed again only for another ``_period``."""
    return list_gpus()


def visible(gpus: Sequence[Gpu], text: str | None, *, by_position: bool = False) -> list[Gpu]:
    """Return the GPUs that a value of ``CUDA_VISIBLE_DEVICES`` selects; None selects all GPUs.

    With ``by_position``, numbers are positions in ``gpus``. The first unknown entry ends the list.
    """
    if text is None:
        return [*gpus]
    chosen: dict[str, Gpu] = {}
    for entry in map(str.strip, text.split(",")):
        matches = [
            gpu
            for position, gpu in enumerate(gpus)
            if entry == str(position if by_position else gpu.number)
            or (entry.startswith(("GPU-", "MIG-")) and gpu.id.startswith(entry))
        ]
        if not matches:
            break
        chosen |= {gpu.id: gpu for gpu in matches}
    return [*chosen.values()]


def _parse(listing: str) -> list[Gpu]:
    gpus: list[Gpu] = []
    whole: Gpu | None = None
    for line in listing.splitlines():
        if match := _GPU.match(line):
            whole = Gpu(match[3], match[2], int(match[1]))
            gpus.append(whole)
        elif whole and (match := _MIG.match(line)):
            if gpus[-1] is whole:
                gpus.pop()
            gpus.append(Gpu(match[3], f"{whole.name} {match[1]}", whole.number, int(match[2])))
    return gpus


@contextmanager
def free(gpus: Sequence[Gpu], folder: Path) -> Iterator[dict[Gpu, int]]:
    """Lock the unused GPUs, and yield the GPUs with their locks' descriptors.

    The caller removes the GPUs that it needs from the result; the other GPUs are unlocked again.
    """
    folder.mkdir(0o700, parents=True, exist_ok=True)
    descriptors: dict[Gpu, int] = {}
    turn = _open(folder / "turn")
    try:
        fcntl.flock(turn, fcntl.LOCK_EX)
        for gpu in gpus:
            descriptor = _open(folder / gpu.id.replace(os.sep, "-"))
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
            else:
                descriptors[gpu] = descriptor
        yield descriptors
    finally:
        for descriptor in (*descriptors.values(), turn):
            os.close(descriptor)


def _open(file: Path) -> int:
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
