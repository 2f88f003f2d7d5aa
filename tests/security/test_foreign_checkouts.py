"""Tests that a foreign repository directs no command at files outside of it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from vertex_training_cli.cli import app
from vertex_training_cli.init import manifest

GIVEN: Final = ("--no-wheels", "--project", "acme-ml-dev", "--number", "210987654321")
PENDING: Final = ".vertex-training.pending"
#: Where a plan of a hostile repository would write.
VICTIMS: Final = ("../victim/authorized_keys", ".git/hooks/post-commit", ".GIT/config", "sub/x.txt")


def vt(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


def made(folder: Path, *more: str) -> Path:
    vt("init", folder, *GIVEN, *more)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    """Return the content of each file of a checkout."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    names = ((path.relative_to(folder).as_posix(), path) for path in paths)
    return {name: path.read_bytes() for name, path in names if not name.startswith(".git/")}


def age(folder: Path) -> None:
    """Turn a repository into one of an earlier release, with another Makefile and report."""
    document = json.loads((folder / manifest.NAME).read_text())
    document["release"] = "0.0.1"
    for path in ("Makefile", "tools/report"):
        text = f"# older\n{document['files'][path]['text']}"
        digest = hashlib.sha256(text.encode()).hexdigest()
        document["files"][path] |= {"text": text, "sha256": digest}
        (folder / path).write_text(text)
    (folder / manifest.NAME).write_text(json.dumps(document))


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
    """Write the plan of an interrupted command into a repository."""
    (folder / PENDING).mkdir(parents=True)
    digest, steps = hashlib.sha256(b"#!/bin/sh\n").hexdigest(), list[dict[str, str | None]]()
    for number, path in enumerate(VICTIMS):
        (folder / PENDING / str(number)).write_bytes(b"#!/bin/sh\n")
        (folder / PENDING / str(number)).chmod(0o755)
        steps.append({"path": path, "before": None, "after": digest})
    (folder / PENDING / "plan.json").write_text(json.dumps(steps))


@pytest.mark.parametrize(
    "command", [("upgrade",), ("init", ".", *GIVEN), ("init", "--environment", "qa")]
)
@pytest.mark.parametrize("with_manifest", [True, False])
def test_plan_file_of_a_cloned_repository_is_not_executed(
    command: tuple[str, ...], with_manifest: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    if with_manifest:
        age(made(source, "--name", "acme"))
    plan(source)
    (tmp_path / "victim").mkdir()
    cloned = clone(source, tmp_path / "clone")
    before = files(cloned)
    monkeypatch.chdir(cloned)
    CliRunner().invoke(app, list(command))
    assert list((tmp_path / "victim").iterdir()) == []
    assert not (cloned / ".git/hooks/post-commit").exists()
    assert not (cloned / "sub").exists()
    assert {name: files(cloned)[name] for name in before} == before


@pytest.mark.parametrize("link", ["Makefile", "tools", ".vertex-training.json", "jobs/digits"])
def test_upgrade_neither_shows_nor_writes_link_targets(link: str, tmp_path: Path) -> None:
    """Covers the creation of the branch and its checkout by git."""
    source = made(tmp_path / "source", "--name", "acme")
    age(source)
    (tmp_path / "elsewhere").mkdir()
    secret = tmp_path / "elsewhere/report"
    secret.write_text("canary of the host\n")
    there = source / link
    target = secret.parent if there.is_dir() else secret
    there.rename(source / "moved")
    there.symlink_to(target)
    cloned = clone(source, tmp_path / "clone")
    before = files(cloned)
    is_manifest = link == manifest.NAME
    said = vt("upgrade", cloned, code=2 if is_manifest else 0)
    assert ("is a link" in said) == is_manifest
    assert files(cloned) == before
    if not is_manifest:
        [branch] = [word for word in said.split() if word.startswith("vt-upgrade-")][:1]
        said += subprocess.run(
            [
                "git", "-c", "user.name=x", "-c", "user.email=x@example.com", "cherry-pick",
                branch,
            ],
            cwd=cloned, capture_output=True, text=True, check=False,
        ).stdout  # fmt: skip
        shown = ["git", "diff", f"{branch}~", branch]
        said += subprocess.run(shown, cwd=cloned, capture_output=True, text=True).stdout
    assert "canary" not in said
    assert files(tmp_path / "elsewhere") == {"report": b"canary of the host\n"}


def test_upgrade_runs_no_program_of_git_settings(tmp_path: Path) -> None:
    """An unpacked repository, unlike a clone, contains hooks and settings."""
    root = made(tmp_path / "x", "--name", "acme")
    age(root)
    (root / ".gitattributes").write_text("* filter=own\n")
    git(root, "init", "--quiet")
    git(root, "add", "--force", ".")
    git(root, "commit", "--quiet", "--message", "x")
    trap = root / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\nexec cat\n")
    trap.chmod(0o755)
    for hook in ("pre-commit", "post-commit", "reference-transaction", "post-index-change"):
        (root / ".git/hooks" / hook).symlink_to(trap)
    for key in (
        "core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "diff.external",
        "filter.own.clean", "filter.own.smudge", "filter.own.process", "gpg.program",
        "credential.helper",
    ):  # fmt: skip
        git(root, "config", key, str(trap))
    git(root, "config", "commit.gpgSign", "true")
    assert "Makefile" in vt("upgrade", root)
    vt("init", root, "--environment", "qa", code=2)
    assert not (tmp_path / "ran").exists()
    subprocess.run(["git", "add", "Makefile", "trap"], cwd=root, capture_output=True, check=False)
    assert (tmp_path / "ran").exists(), "the trap does not work"


@pytest.mark.parametrize("path", ["../victim/x", "/etc/passwd", ".GIT/config", "sub/.git/hooks/x"])
def test_manifest_with_paths_outside_of_the_repository_is_refused(
    path: str, tmp_path: Path
) -> None:
    root = made(tmp_path / "x", "--name", "acme")
    document = json.loads((root / manifest.NAME).read_text())
    document["files"][path] = document["files"].pop("README.md")
    (root / manifest.NAME).write_text(json.dumps(document))
    assert "is not a path in this repository" in vt("upgrade", root, code=2)


#: Modules that Python, or a tool, would load from a folder by itself.
LOADED: Final = ("extra.py", "sitecustomize.py", "usercustomize.py", "conftest.py", "yaml.py")
PROGRAMS: Final = ("pulumi", "python", "git", "gcloud")


@pytest.fixture(scope="module")
def trapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository in which each piece of code writes a file when it runs."""
    folder = tmp_path_factory.mktemp("trapped")
    root, trap = made(folder / "clone", "--name", "acme"), f"open({str(folder / 'ran')!r}, 'a')\n"
    for name in (*LOADED, "jobs/digits/setup.py"):
        (root / name).write_text("")
    for file in root.rglob("*.py"):
        file.write_text(trap + file.read_text())
    (root / ".venv/bin").mkdir(parents=True)
    for name in PROGRAMS:
        (root / ".venv/bin" / name).write_text(f"#!/bin/sh\ntouch {folder / 'ran'}\n")
        (root / ".venv/bin" / name).chmod(0o755)
    clone(root, folder / "unused")
    return root


@pytest.mark.parametrize(
    "command",
    [
        "check", "check --fix", "render jobs/digits.yaml --stack dev", "diff dev local",
        "images list --stack dev", "upgrade", "jobs rerun digits --stack dev",
        "import jobs/digits/task.py",
    ],
)  # fmt: skip
def test_read_only_commands_run_no_code_of_the_repository(trapped: Path, command: str) -> None:
    vt = Path(sys.executable).parent / "vt"
    ran = trapped.parent / "ran"
    done = subprocess.run(
        [vt, *command.split()], cwd=trapped, capture_output=True, text=True, check=False
    )
    assert done.stdout + done.stderr
    assert not ran.exists()
    subprocess.run([sys.executable, "extra.py"], cwd=trapped, check=True)
    assert ran.exists(), "the trap does not work"
    ran.unlink()


@pytest.mark.parametrize(
    "command",
    [
        ("diff", "x", "y"), ("check", "--stack", "x"), ("review", "-s", "x"),
        ("jobs", "list", "-s", "x"),
    ],
)  # fmt: skip
def test_pipe_in_place_of_a_stack_file_is_refused_at_once(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: x\nruntime: python\n")
    os.mkfifo(tmp_path / "Pulumi.x.yaml")
    done = subprocess.run(
        [str(Path(sys.executable).with_name("vt")), *command],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "Pulumi.x.yaml" in done.stderr
