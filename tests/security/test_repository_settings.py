"""Tests the files and the page on which the repository's own protection depends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "bootstrap" / "README.md").read_text()


def owners() -> dict[str, list[str]]:
    lines = (ROOT / ".github" / "CODEOWNERS").read_text().splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    return {path: owner for path, *owner in words}


@pytest.mark.parametrize(
    "folder",
    [
        "/bootstrap/",
        "/policy/",
        "/infra/vertex_training/guardrails/",
        "/.github/",
        "/jobs/",
        "/Pulumi.*.yaml",
        "/__main__.py",
        "/extra.py",
    ],
)
def test_change_of_protected_files_requires_an_owner(folder: str) -> None:
    assert owners()[folder]


def test_owned_paths_exist_and_no_line_removes_an_owner() -> None:
    for path, names in owners().items():
        added_by_a_team = path.strip("/") in ("extra", "extra.py")
        assert added_by_a_team or list(ROOT.glob(path.strip("/"))), path
        assert all(re.fullmatch(r"@[\w-]+/[\w-]+", name) for name in names), path
        assert names, path


def test_page_names_each_environment_and_the_required_check() -> None:
    files = {file.stem: yaml.safe_load(file.read_text())["jobs"] for file in
             (ROOT / ".github" / "workflows").glob("*.yml")}  # fmt: skip
    named = {job["environment"] for jobs in files.values() for job in jobs.values()
             if "environment" in job}  # fmt: skip
    assert named == {
        "dev", "dev-advance", "dev-images", "dev-plan",
        "prod", "prod-advance", "prod-plan", "release",
    }  # fmt: skip
    for name in named:
        assert f"| environment `{name}` |" in PAGE
    assert f"`{files['check']['check']['name']}`" in PAGE
