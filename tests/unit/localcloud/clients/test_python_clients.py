"""What each Python of the local shell runs first, beside somebody's own ``sitecustomize``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from localgcp.clients import python_clients

#: Prints how often somebody's own file ran, and how many finders of ours are there.
COUNTED = (
    "import builtins, sys; "
    "print(builtins.ran, sum(type(each).__name__ == '_Patcher' for each in sys.meta_path))"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folders ``empty``, ``theirs`` with a file of that name, and two of local shells."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "sitecustomize.py").write_text(
        "import builtins\nbuiltins.ran = getattr(builtins, 'ran', 0) + 1\n"
    )
    for shell in ("first", "second"):
        python_clients.write_settings(tmp_path / shell)
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "finders"),
    [
        (("first/python", "theirs"), 1),
        (("empty", "first/python", "theirs"), 1),
        (("first/python", "empty", "theirs"), 1),
        (("first/python", "second/python", "theirs"), 2),
        (("empty", "second/python", "first/python", "theirs"), 2),
        (("first/python", "first/python", "theirs"), 1),
    ],
)
def test_each_file_runs_once_wherever_the_shells_folder_stands(
    folder: Path, paths: tuple[str, ...], finders: int
) -> None:
    """A program put a folder of its own before it, and the file ran itself a hundred times."""
    path = os.pathsep.join(str(folder / each) for each in paths)
    done = subprocess.run(
        [sys.executable, "-c", COUNTED],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["1", str(finders)], done.stderr
    assert done.stderr == ""
