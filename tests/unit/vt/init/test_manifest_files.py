"""The file of what was written: its text, and what of it is refused when it is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.init import manifest


def put(root: Path, document: Any) -> None:
    text = document if isinstance(document, str) else json.dumps(document)
    (root / ".vertex-training.json").write_text(text)


def test_a_folder_without_one_was_not_made_here(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as refused:
        manifest.read(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path} has no .vertex-training.json: `vt init` did not make it. Hint: `vt init DIR` "
        "makes a new repository"
    )


@pytest.mark.parametrize(("size", "words"), [(8_000_000, "is not what"), (8_000_001, "8,000,001")])
def test_a_manifest_is_read_up_to_a_size(tmp_path: Path, size: int, words: str) -> None:
    put(tmp_path, "x" * size)
    with pytest.raises(CommandError, match=words):
        manifest.read(tmp_path)
