"""Folders that may be there already, and folders that may be gone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from localgcp.folders import make_folder


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_umask")
@pytest.mark.parametrize(("given", "mode"), [((), 0o755), ((0o700,), 0o700)])
def test_a_folder_is_made_once_with_those_above_it(
    tmp_path: Path, given: tuple[int, ...], mode: int
) -> None:
    folder = tmp_path / "a" / "b"
    for _ in range(2):
        make_folder(folder, *given)
        (folder / "kept").touch()
    assert stat.S_IMODE(folder.stat().st_mode) == mode
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o755
