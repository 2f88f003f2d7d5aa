"""Tests that git's conversions between commit and folder hide no change from an approval."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from tests.conftest import git
from tests.unit.vt.conftest import project
from vertex_training_cli.cli import app
from vertex_training_cli.deploy import command, sources

__all__ = ["project"]

DIGEST: Final = "f" * 64
THEIRS: Final = "print('of the attacker')"
#: Approved code, and what the folder has in its place.
PLAIN: Final = (b"# committed\n", f"{THEIRS}\n".encode())
#: In UTF-7, ``+ACM-`` is ``#``: approved is a comment.
UTF7: Final = tuple(
    f"ACM = 0\n{sign} ({THEIRS} or 0)\n".encode() for sign in ("#", "+ACM-")
)  # fmt: skip
#: For Python a carriage return ends the line, for git it is within ``$Id$``.
IDENT: Final = (b"# $Id$\n", f"# $Id: \r{THEIRS} # $\n".encode())
LINES: Final = (b"x = 1\n", b"x = 1\r\n")


def vt(*words: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.stderr


@pytest.fixture
def repo(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PULUMI_BACKEND_URL", "gs://nowhere")
    monkeypatch.setattr(sources, "review", lambda *_: pytest.fail("it was planned"))
    git(project, "init", "-q", "-b", "main")
    git(project, "config", "core.autocrlf", "false")
    return project


def commit(repo: Path, content: bytes) -> None:
    (repo / "extra.py").write_bytes(content)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "a commit")


def approved(repo: Path) -> Path:
    file = repo / "out" / "approval.json"
    assert vt("approval", "-s", "dev", DIGEST, "-o", file) == (0, "")
    return file


def refused(record: Path, *names: str) -> None:
    text = f"files differ from the commit (got {', '.join(names)})"
    code, said = vt("approval", "-s", "dev", DIGEST)
    assert (code, text in said) == (1, True), said
    code, said = vt("deploy", "-s", "dev", "--approval", record)
    assert (code, text in said) == (command.STOPPED, True), said


def attributes(repo: Path, where: str, text: str) -> None:
    """Return conversion settings, by the file from which git reads them."""
    place = {"user": repo / ".git" / "x", "info": repo / ".git" / "info" / "attributes"}
    file = place.get(where, repo / where)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n")
    if where == "user":
        git(repo, "config", "core.attributesFile", str(file))


CONVERSIONS: Final = {
    "*.py working-tree-encoding=UTF-7": UTF7,
    "*.py ident": IDENT,
    "*.py text": LINES,
    "*.py filter=theirs": PLAIN,
}


@pytest.mark.parametrize("where", [".gitattributes", "info", "user"])
@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_uncommitted_conversion_hides_no_edit(repo: Path, where: str, conversion: str) -> None:
    ours, theirs = CONVERSIONS[conversion]
    commit(repo, ours)
    record = approved(repo)
    git(repo, "config", "filter.theirs.clean", "git cat-file blob HEAD:extra.py")
    attributes(repo, where, conversion)
    (repo / "extra.py").write_bytes(theirs)
    assert git(repo, "diff", "HEAD") == ""
    refused(record, "extra.py")


@pytest.mark.parametrize("conversion", ["*.py ident", "*.py text"])
def test_committed_conversion_hides_no_edit(repo: Path, conversion: str) -> None:
    ours, theirs = CONVERSIONS[conversion]
    attributes(repo, ".gitattributes", conversion)
    commit(repo, ours)
    record = approved(repo)
    (repo / "extra.py").write_bytes(theirs)
    assert git(repo, "diff", "HEAD") == ""
    refused(record, "extra.py")


def test_python_runs_code_hidden_by_a_conversion(tmp_path: Path) -> None:
    for _, theirs in (UTF7, IDENT, PLAIN):
        (tmp_path / "extra.py").write_bytes(theirs)
        done = subprocess.run([sys.executable, "extra.py"], cwd=tmp_path, capture_output=True)
        assert done.stdout == b"of the attacker\n"


def test_line_end_conversion_of_git_settings_is_detected(repo: Path) -> None:
    commit(repo, LINES[0])
    record = approved(repo)
    git(repo, "config", "core.autocrlf", "true")
    (repo / "extra.py").write_bytes(LINES[1])
    assert git(repo, "diff", "HEAD") == ""
    refused(record, "extra.py")


def test_edit_outside_of_a_sparse_checkout_is_detected(repo: Path) -> None:
    commit(repo, PLAIN[0])
    record = approved(repo)
    git(repo, "config", "core.sparseCheckout", "true")
    git(repo, "config", "sparse.expectFilesOutsideOfPatterns", "true")
    (repo / ".git" / "info" / "sparse-checkout").write_text("/jobs\n/Pulumi*\n")
    git(repo, "read-tree", "-m", "-u", "HEAD")
    (repo / "extra.py").write_bytes(PLAIN[1])
    assert git(repo, "diff", "HEAD") == ""
    refused(record, "extra.py")


def test_commit_with_replaced_objects_is_not_approved(repo: Path) -> None:
    commit(repo, PLAIN[0])
    record, tree = approved(repo), git(repo, "rev-parse", "HEAD^{tree}")
    commit(repo, PLAIN[1])
    theirs = git(repo, "rev-parse", "HEAD^{tree}")
    git(repo, "reset", "-q", "--soft", "HEAD~1")
    git(repo, "rm", "-qr", "--cached", "out")
    git(repo, "replace", tree, theirs)
    refused(record, "extra.py")


def test_changed_file_mode_or_type_is_detected(repo: Path) -> None:
    (repo / "link").symlink_to("jobs")
    (repo / "run.sh").touch(0o755)
    commit(repo, PLAIN[0])
    record = approved(repo)
    git(repo, "config", "core.fileMode", "false")
    (repo / "extra.py").chmod(0o755)
    (repo / "run.sh").chmod(0o644)
    git(repo, "config", "core.symlinks", "false")
    (repo / "link").unlink()
    (repo / "link").write_text("jobs")
    refused(record, "extra.py", "link", "run.sh")


def test_folder_replaced_by_a_link_is_detected(
    repo: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (repo / ".gitignore").write_text("jobs\nout\n")
    git(repo, "add", "-f", "jobs/train.yaml")
    commit(repo, PLAIN[0])
    record, moved = approved(repo), tmp_path_factory.mktemp("x") / "jobs"
    (repo / "jobs").rename(moved)
    (repo / "jobs").symlink_to(moved)
    refused(record, "jobs/train.yaml")
