"""``make release`` and ``make publish``, in a commit of this checkout; ``gh`` is a stand-in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.structure.tree import ROOT, files
from tools import release

PLUGIN = "pulumi-resource-vertex-training"
VERSION = release.version_of(ROOT)
TAG = f"v{VERSION}"
PARTS = (
    *release.SOURCES["."], *release.SOURCES["localcloud"],
    ".gitignore", "CHANGELOG.md", "Makefile", "requirements/", "templates/", "tools/",
)  # fmt: skip
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com")
GH = '#!/bin/sh\nfor each; do echo "$each"; done\n'

Make = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def commit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A commit of what a release is made of, whose changelog has this version."""
    folder = tmp_path_factory.mktemp("commit")
    for name in [name for name in files() if name.startswith(PARTS)]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    changes = folder / "CHANGELOG.md"
    text = changes.read_text()
    if f"## [{VERSION}]" not in text:
        section = f"## [Unreleased]\n\n## [{VERSION}] - 2026-11-24\n"
        changes.write_text(text.replace("## [Unreleased]\n", section, 1))
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "Release"]):
        subprocess.run([*GIT, *command], cwd=folder, check=True)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder


@pytest.fixture
def make(commit: Path, tmp_path: Path) -> Make:
    """A make verb in the commit, with a ``gh`` that prints what it is given."""
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)

    def run(verb: str, tag: str = "", umask: int = 0o022) -> subprocess.CompletedProcess[str]:
        path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["make", "-o", "setup", verb], cwd=commit, capture_output=True, text=True, check=False,
            env={**os.environ, "PATH": path, "TAG": tag}, umask=umask,
        )  # fmt: skip

    return run


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_commit_makes_the_same_bytes_each_time(commit: Path, make: Make) -> None:
    done = make("release", TAG)
    assert done.returncode == 0, done.stderr
    first = contents(commit / "dist")
    assert make("release", umask=0o077).returncode == 0
    assert contents(commit / "dist") == first
    archives = {f"{PLUGIN}-{TAG}-{system}.tar.gz" for system in release.SYSTEMS}
    wheels = {f"{name}-{VERSION}-py3-none-any.whl" for name in ("localgcp", "vertex_training")}
    templates = f"vertex-training-templates-{TAG}.tar.gz"
    assert set(first) == {*archives, *wheels, templates, "SHA256SUMS"}
    check = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    assert subprocess.run(check, cwd=commit / "dist", capture_output=True).returncode == 0


def test_the_plugin_is_a_folder_with_the_wheel_and_tested_versions(
    commit: Path, make: Make, tmp_path: Path
) -> None:
    make("release")
    wheel = f"vertex_training-{VERSION}-py3-none-any.whl"
    with tarfile.open(commit / "dist" / f"{PLUGIN}-{TAG}-linux-amd64.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    assert (tmp_path / wheel).read_bytes() == (commit / "dist" / wheel).read_bytes()
    assert f"./{wheel}\n" in (tmp_path / "requirements.txt").read_text()
    pins = (tmp_path / "constraints.txt").read_text()
    assert re.search(r"^pulumi-gcp==\d", pins, re.MULTILINE)
    assert "--hash" not in pins
    assert "\\" not in pins
    assert "name: python" in (tmp_path / "PulumiPlugin.yaml").read_text()


def test_a_tag_is_refused_unless_all_of_it_is_that_version(commit: Path, make: Make) -> None:
    changes = commit / "CHANGELOG.md"
    text = changes.read_text()
    changes.write_text(text.replace(f"## [{VERSION}]", "## [0.0.0]"))
    try:
        done = make("release", "v9.9.9")
    finally:
        changes.write_text(text)
    assert done.returncode != 0
    assert f"tag v9.9.9 differs from {TAG}, the version in pyproject.toml" in done.stderr
    assert f"CHANGELOG.md has no section `## [{VERSION}] - YYYY-MM-DD`" in done.stderr
    assert "the checkout has uncommitted changes: M CHANGELOG.md" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_release_has_one_version(tmp_path: Path) -> None:
    for folder, version in ((".", "1.0.0"), ("localcloud", "1.0.1")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\n')
    with pytest.raises(
        release.ReleaseError, match=r"the versions differ \(\./pyproject.toml: 1\.0\.0"
    ):
        release.version_of(tmp_path)


def test_the_page_of_a_release_has_what_was_built_and_its_changes(commit: Path, make: Make) -> None:
    make("release", TAG)
    (commit / "dist" / "notes-of-mine.txt").touch()
    try:
        said = make("publish", TAG).stdout.splitlines()
    finally:
        (commit / "dist" / "notes-of-mine.txt").unlink()
    assert said[:4] == ["release", "create", TAG, "--verify-tag"]
    assert set(contents(commit / "dist")) <= set(said)
    assert "notes-of-mine.txt" not in said
    notes = (commit / ".build" / "release-notes.md").read_text()
    assert notes.strip()
    assert "## [" not in notes


def test_files_that_are_not_what_was_built_are_not_published(commit: Path, make: Make) -> None:
    make("release", TAG)
    [wheel] = (commit / "dist").glob("localgcp-*.whl")
    wheel.write_bytes(b"another")
    done = make("publish", TAG)
    assert done.returncode != 0
    assert wheel.name in done.stdout + done.stderr
    assert "create" not in done.stdout
