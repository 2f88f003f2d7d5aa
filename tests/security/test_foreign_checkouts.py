"""A repository from somebody else: what it carries directs no command at files outside of it."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from tests.unit.vt.init.conftest import cache
from tests.unit.vt.init.test_init import files, made, vt
from vertex_training_cli.cli import app
from vertex_training_cli.init import manifest

__all__ = ["cache"]

PENDING: Final = ".vertex-training.pending"
#: Where a plan of a hostile repository would write.
VICTIMS: Final = ("../victim/authorized_keys", ".git/hooks/post-commit", ".GIT/config", "sub/x.txt")


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def clone(source: Path, target: Path) -> Path:
    git(source, "init", "--quiet")
    git(source, "add", "--force", ".")
    git(source, "commit", "--quiet", "--message", "x")
    git(source.parent, "clone", "--quiet", str(source), str(target))
    return target


def plan(folder: Path) -> None:
    """Put into a repository what an interrupted command once left in it."""
    (folder / PENDING).mkdir(parents=True)
    digest, steps = hashlib.sha256(b"#!/bin/sh\n").hexdigest(), list[dict[str, str | None]]()
    for number, path in enumerate(VICTIMS):
        (folder / PENDING / str(number)).write_bytes(b"#!/bin/sh\n")
        (folder / PENDING / str(number)).chmod(0o755)
        steps.append({"path": path, "before": None, "after": digest})
    (folder / PENDING / "plan.json").write_text(json.dumps(steps))


@pytest.mark.parametrize(
    "command",
    [
        ("upgrade",), ("upgrade", "--write"), ("init", "."),
        ("init", "--environment", "qa"), ("init", "--environment", "qa", "--write"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("with_manifest", [True, False])
def test_no_command_carries_out_a_plan_that_a_cloned_repository_has(
    command: tuple[str, ...], with_manifest: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    if with_manifest:
        made(source, "--name", "acme")
    plan(source)
    (tmp_path / "victim").mkdir()
    cloned = clone(source, tmp_path / "clone")
    before = files(cloned)
    monkeypatch.chdir(cloned)
    CliRunner().invoke(app, list(command))
    assert list((tmp_path / "victim").iterdir()) == []
    assert not (cloned / ".git/hooks/post-commit").exists()
    assert not (cloned / "sub").exists()
    if "--write" not in command:
        assert files(cloned) == before


@pytest.mark.parametrize("link", ["Makefile", "tools", ".vertex-training.json", "jobs/digits"])
def test_an_upgrade_neither_shows_nor_writes_what_a_link_leads_to(
    link: str, tmp_path: Path
) -> None:
    source = made(tmp_path / "source", "--name", "acme")
    (tmp_path / "elsewhere").mkdir()
    secret = tmp_path / "elsewhere/report"
    secret.write_text("canary of the host\n")
    there = source / link
    target = secret.parent if there.is_dir() else secret
    there.rename(source / "moved")
    there.symlink_to(target)
    cloned = clone(source, tmp_path / "clone")
    for command in (("upgrade", str(cloned)), ("upgrade", str(cloned), "--write")):
        said = vt(*command, code=2)
        assert "is a link" in said
        assert "canary" not in said
    assert files(tmp_path / "elsewhere") == {"report": b"canary of the host\n"}


@pytest.mark.parametrize("path", ["../victim/x", "/etc/passwd", ".GIT/config", "sub/.git/hooks/x"])
def test_a_manifest_that_names_what_is_not_the_repositorys_is_refused(
    path: str, tmp_path: Path
) -> None:
    root = made(tmp_path / "x", "--name", "acme")
    document = json.loads((root / manifest.NAME).read_text())
    document["files"][path] = document["files"].pop("README.md")
    (root / manifest.NAME).write_text(json.dumps(document))
    assert "is no file of this repository" in vt("upgrade", str(root), "--write", code=2)
