"""The pins name versions and hashes, and nothing of the machine they were compiled on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
COMPILED = sorted(
    [*(ROOT / "requirements").glob("*.txt"), ROOT / "cli/vertex_training_cli/toolchain/policy.txt"]
)


@pytest.mark.parametrize("file", COMPILED, ids=lambda file: file.name)
def test_every_line_is_a_pin_a_hash_or_a_comment(file: Path) -> None:
    allowed = re.compile(
        r"([a-z0-9.-]+==\S+( ; .+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?|\s*#.*)"
    )
    assert [line for line in file.read_text().splitlines() if not allowed.fullmatch(line)] == []


@pytest.mark.parametrize("file", COMPILED, ids=lambda file: file.name)
def test_no_line_names_a_registry_or_a_folder_of_a_machine(file: Path) -> None:
    assert not re.search(r"://|--(index|extra|find)|(^|[ =])/", file.read_text(), re.MULTILINE)


def test_the_tools_see_the_versions_that_the_program_runs_with() -> None:
    def pins(name: str) -> set[str]:
        text = next(file for file in COMPILED if file.name == name).read_text()
        return set(re.findall(r"^[a-z0-9.-]+==\S+", text, re.MULTILINE))

    assert pins("runtime.txt") <= pins("dev.txt")
