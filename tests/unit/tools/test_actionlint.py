"""Where actionlint comes from. The build itself is what `make check` does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import go_programs
from vertex_training_cli.toolchain.console import SetupError
from vertex_training_cli.toolchain.layout import Layout

GO_MOD = "module actionlint\n\nrequire (\n\tgithub.com/rhysd/actionlint v1.7.12 // indirect\n)\n"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    root = tmp_path / "checkout"
    (root / "tools" / "actionlint").mkdir(parents=True)
    (root / "tools" / "actionlint" / "go.mod").write_text(GO_MOD)
    (root / "tools" / "actionlint" / "go.sum").write_text("")
    (root / ".venv" / "bin").mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return Layout(root, tmp_path / "cache")


def program(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def test_a_module_file_without_it_is_an_error(checkout: Layout) -> None:
    (checkout.tools / "actionlint" / "go.mod").write_text("module actionlint\n")
    with pytest.raises(SetupError, match="does not require"):
        go_programs.pinned_version("actionlint", checkout)


def test_a_newer_one_on_path_is_used(checkout: Layout, tmp_path: Path) -> None:
    found = program(tmp_path / "path" / "actionlint", "echo 1.8.0")
    assert go_programs.ensure("actionlint", checkout) == {"actionlint": f"1.8.0, {found}"}
    assert (checkout.bin / "actionlint").resolve() == found


def test_without_go_an_older_one_is_named_in_the_reasons(checkout: Layout, tmp_path: Path) -> None:
    program(tmp_path / "path" / "actionlint", "echo 1.7.0")
    with pytest.raises(SetupError) as caught:
        go_programs.ensure("actionlint", checkout)
    older, without = caught.value.tried
    assert "is version 1.7.0; needed is 1.7.12" in older
    assert without == "Go is not on PATH"
    assert "put Go" in caught.value.hint


def test_one_that_does_not_run_is_passed_over(checkout: Layout, tmp_path: Path) -> None:
    program(tmp_path / "path" / "actionlint", "exit 3")
    with pytest.raises(SetupError) as caught:
        go_programs.ensure("actionlint", checkout)
    assert "exit code 3" in caught.value.tried[0]
