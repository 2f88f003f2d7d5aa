"""Kills ``vt data`` repeatedly: no file may be partial or lost.

A push and a pull of many small files, and of one large file, by the real CLI against the storage
emulator. Each command is killed when a random share of the data has arrived.
"""

from __future__ import annotations

import filecmp
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.runner.gcsfuse import storage_client
from localgcp.storage.emulator import StorageEmulator
from localgcp.storage.proxy import StorageFront
from tests.fixture_project import source_path
from tests.unit.localcloud.conftest import free_port
from vertex_training_cli.data import files
from vertex_training_cli.data.transfer import LARGE

ROOT: Final = Path(__file__).parents[2]
#: The bucket that stack ``local`` names ``data``.
_BUCKET: Final = "local-training-data-local"
_BLOCK: Final = 1 << 20
_POLL_SECONDS: Final = 0.01
#: A command that is not over by then hangs.
_COMMAND_SECONDS: Final = 900.0


@dataclass
class Transfer:
    """One killed transfer, and its result."""

    what: str
    kills: int = 0
    seconds: float = 0.0
    """All commands together."""
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Place:
    """A bucket of an emulator, and folders for a transfer."""

    base: Path
    objects: Path
    uploads: Path
    env: dict[str, str]

    def vt(self, *words: object) -> subprocess.Popen[str]:
        """Start the CLI."""
        return subprocess.Popen(
            [sys.executable, "-m", "vertex_training_cli.cli", "data", *map(str, words)],
            cwd=ROOT,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def run(base: Path, *, count: int, size: int, kills: int, seed: int) -> list[Transfer]:
    """Kill each push and each pull of ``count`` small files and one file of ``size`` bytes."""
    chance = random.Random(seed)
    small, large = base / "small", base / "large"
    _write_small(small, count, chance)
    _write_large(large / "big.bin", size, chance)
    done: list[Transfer] = []
    with _emulator(base) as place:
        for folder, what in ((small, f"{count:,} files"), (large, f"{size / 2**30:.2f} GiB")):
            there, back = folder.name, base / "back" / folder.name
            push, pull = ("push", "data/" + there, folder), ("pull", "data/" + there, back)
            arrived = partial(_arrived, place.objects / there, place.uploads)
            done.append(_transfer(place, f"push of {what}", push, arrived, folder, kills, chance))
            _compare(done[-1], folder, place.objects / there)
            arrived = partial(_arrived, back, back / files.PARTIAL)
            done.append(_transfer(place, f"pull of {what}", pull, arrived, folder, kills, chance))
            _compare(done[-1], folder, back)
            shutil.rmtree(back, ignore_errors=True)
    return done


def _transfer(
    place: _Place,
    what: str,
    words: tuple[object, ...],
    arrived: Callable[[], int],
    source: Path,
    kills: int,
    chance: random.Random,
) -> Transfer:
    """Kill the command ``kills`` times, each time later; then let it end, and repeat it."""
    made, began = Transfer(what), time.monotonic()
    whole = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
    for share in sorted(chance.uniform(0.02, 0.9) for _ in range(kills)):
        before = arrived()
        process = place.vt(*words)
        if _reaches(process, arrived, int(share * whole)):
            process.send_signal(signal.SIGKILL)
        process.communicate()
        made.kills += process.returncode == -signal.SIGKILL
        if (now := arrived()) < before:
            made.problems.append(f"had {before:,} bytes, and {now:,} after the next command")
    for again in (False, True):
        process = place.vt(*words)
        said = process.communicate(timeout=_COMMAND_SECONDS)[0]
        if process.returncode:
            made.problems.append(f"ended with {process.returncode}: {said.strip()[-300:]}")
        elif again and "unchanged" not in said:
            made.problems.append(f"a second time it did something: {said.strip()[-300:]}")
    made.seconds = time.monotonic() - began
    if not made.kills:
        made.problems.append("no command was killed")
    return made


def _reaches(process: subprocess.Popen[str], arrived: Callable[[], int], size: int) -> bool:
    """Wait until a number of bytes arrived; return False if the command ended before."""
    while process.poll() is None:
        if arrived() >= size:
            return True
        time.sleep(_POLL_SECONDS)
    return False


def _arrived(*folders: Path) -> int:
    """Return bytes of all files below these folders; nested folders count once."""
    found: dict[str, int] = {}
    for folder in folders:
        for above, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(above, name)
                try:
                    found[path] = os.stat(path).st_size
                except FileNotFoundError:  # a part that became whole since it was listed
                    continue
    return sum(found.values())


def _compare(made: Transfer, source: Path, copy: Path) -> None:
    """Check that all files exist and are equal, and that no other file exists."""
    wanted, found = (
        {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
        for folder in (source, copy)
    )
    if wanted != found:
        made.problems.append(
            f"{len(wanted - found)} files lack, {len(found - wanted)} are too many"
        )
    different = [
        name
        for name in wanted & found
        if not filecmp.cmp(source / name, copy / name, shallow=False)
    ]
    if different:
        made.problems.append(f"{len(different)} files differ, such as {different[0]}")


def _write_small(folder: Path, count: int, chance: random.Random) -> None:
    for number in range(count):
        path = folder / f"{number % 100:02}" / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(chance.randbytes(chance.randrange(4096)))


def _write_large(path: Path, size: int, chance: random.Random) -> None:
    """Write a large file of distinct blocks, so that a misplaced block is detected."""
    path.parent.mkdir(parents=True)
    block = chance.randbytes(_BLOCK)
    with path.open("wb") as file:
        for number in range(0, max(size, LARGE), _BLOCK):
            file.write(number.to_bytes(8, "big") + block[8:])


@contextmanager
def _emulator(base: Path) -> Iterator[_Place]:
    home = Home(base / "home", ROOT)
    home.create()
    emulator = StorageEmulator(home.storage, home.storage_log, home.children)
    front = StorageFront(emulator, FaultTable(home.faults), free_port)
    front.start(free_port())
    try:
        storage_client(front.url).create_bucket(_BUCKET)
        env = {
            **os.environ,
            "STORAGE_EMULATOR_HOST": front.url,
            "XDG_CACHE_HOME": str(base / "cache"),
            "PYTHONPATH": source_path(ROOT),
        }
        objects = home.storage / _BUCKET
        yield _Place(base, objects, home.storage.with_name("uploads"), env)
    finally:
        front.stop()
