"""Tests stand on the stacks of ``tests/fixtures/project`` and leave the repository's alone."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.fixture_project import PROJECT, ROOT
from tests.unit.structure.tree import files

#: They show samples, or run what is in ``jobs/`` by its name.
MAY_READ_SAMPLES: Final = ("tests/golden/test_samples.py", "tests/fixture_project.py")
#: A path from the top of the repository to a stack file or to what is in ``jobs/``.
PATH: Final = re.compile(
    r"""(?:ROOT|parents\[\d\]) */ *f?["'](?:bootstrap/)?(?:Pulumi\.[^"']+\.yaml|jobs["'/])"""
    r"""|(?:ROOT|parents\[\d\]) */ *["']bootstrap["'] */ *f?["']Pulumi\.[^"']+\.yaml"""
)


@pytest.mark.parametrize("name", ["Pulumi.dev.yaml", "bootstrap/Pulumi.none.yaml"])
def test_a_stack_file_of_the_repository_cannot_be_opened(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with pytest.raises(AssertionError, match="which companies replace"):
        (ROOT / name).read_text()
    monkeypatch.chdir(ROOT / "docs")
    with pytest.raises(AssertionError, match="which companies replace"):
        Path("..", name).read_bytes()


@pytest.mark.parametrize("name", ["Pulumi.dev.yaml", "bootstrap/Pulumi.dev.yaml"])
def test_those_of_the_fixtures_can(name: str) -> None:
    assert "config:" in (PROJECT / name).read_text()


def test_no_test_names_a_stack_file_or_a_job_of_the_repository() -> None:
    naming = [
        name
        for name in files()
        if name.startswith("tests/") and name.endswith(".py") and name not in MAY_READ_SAMPLES
        if PATH.search((ROOT / name).read_text())
    ]
    assert naming == [], "Hint: tests/fixture_project.py"


def test_a_folder_elsewhere_with_such_a_name_can_be_removed(tmp_path: Path) -> None:
    """`rmtree` opens it by its bare name, beside an open folder that the hook is not told."""
    (tmp_path / "old" / "Pulumi.folder.yaml").mkdir(parents=True)
    shutil.rmtree(tmp_path / "old")
    assert not (tmp_path / "old").exists()
