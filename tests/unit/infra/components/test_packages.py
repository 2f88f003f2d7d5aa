"""Packages on this machine: written where they are not there or other, and else left alone."""

import asyncio
import os
from pathlib import Path

import pulumi

from tests.unit.infra.recorder import Recorder
from tests.unit.infra.stacks import BASE
from vertex_training import program
from vertex_training.stack import from_raw


def written(root: Path) -> Path:
    """The one package of a stack, after it was deployed from ``root``."""
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(Recorder(), "training", "prod", preview=True)

    @pulumi.runtime.test
    def run() -> None:
        program.deploy(from_raw(BASE | {"packages": {"titanic": {"path": "titanic"}}}, root))

    run()
    [found] = (root / ".build/packages").iterdir()
    return found


def test_existing_package_is_not_written_again(tmp_path: Path) -> None:
    (tmp_path / "titanic").mkdir()
    (tmp_path / "titanic" / "__init__.py").write_text("")
    made = written(tmp_path)
    content = made.read_bytes()
    os.utime(made, (1, 1))
    assert written(tmp_path) == made
    assert made.stat().st_mtime == 1  # as it was
    made.write_bytes(b"cut short")
    assert written(tmp_path).read_bytes() == content
