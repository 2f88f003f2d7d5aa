"""Programs of the tests are in folders of their own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the program, which files that arguments name are below."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
