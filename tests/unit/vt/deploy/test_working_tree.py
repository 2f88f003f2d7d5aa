"""Which files of a folder are those of a commit, and what a program would read beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp.system.root_directory import RootDirectory
from vertex_training_cli.deploy.sources import (
    CommittedFile,
)

#: As ``git hash-object`` prints it for a file that holds ``one``; the second by SHA-256.
ONE = "43dd47ea691c90a5fa7827892c70241913351963"
ONE_SHA256 = "437613f2000d14882113a8ceeb5e68572589edac29230c9fecd09d682612c4a3"
#: For a file without content, and for a link to ``a.txt``.
EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def write(root: Path, *names: str, text: str = "one") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize(
    ("mode", "object_id", "text", "rights", "same"),
    [
        ("100644", ONE, "one", 0o644, True),
        ("100644", ONE_SHA256, "one", 0o644, True),
        ("100644", EMPTY, "", 0o600, True),
        ("100644", ONE, "one\n", 0o644, False),
        ("100644", ONE, "One", 0o644, False),
        ("100644", ONE_SHA256, "One", 0o644, False),
        ("100644", EMPTY, "one", 0o644, False),
        # git has one bit of the rights: whether the owner may execute it
        ("100755", ONE, "one", 0o755, True),
        ("100755", ONE, "one", 0o700, True),
        ("100755", ONE, "one", 0o655, False),
        ("100644", ONE, "one", 0o655, True),
        ("100644", ONE, "one", 0o744, False),
        ("100755", ONE, "One", 0o755, False),
        ("120000", ONE, "one", 0o644, False),
    ],
)
def test_a_file_is_that_of_the_commit_byte_by_byte(
    tmp_path: Path, mode: str, object_id: str, text: str, rights: int, same: bool
) -> None:
    write(tmp_path, "a", text=text)
    (tmp_path / "a").chmod(rights)
    assert CommittedFile(mode, object_id, "a").is_in(RootDirectory(tmp_path)) is same
