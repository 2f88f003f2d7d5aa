"""``vt init``: a repository from a few answers, whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from vertex_training_cli.cli import app
from vertex_training_cli.init import answers, changes, manifest, staging
from vertex_training_cli.init.answers import Answers
from vertex_training_cli.init.rendering import render

NOTHING = dict.fromkeys(answers.OPTIONS, "")
GIVEN = ("--project", "acme-ml-dev", "--number", "210987654321")


def vt(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


def made(folder: Path, *more: str) -> Path:
    vt("init", str(folder), *GIVEN, *more)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def usual(*names: str) -> Answers:
    given = {"name": "acme", "project": "acme-ml-dev", "projectNumber": "210987654321"}
    found = answers.of_options({**NOTHING, **given}, "x")
    for name in names:
        found = found.with_environment(another(name, found))
    return found


def another(name: str, found: Answers) -> answers.EnvironmentAnswers:
    """An environment of which nothing was said but its name."""
    return answers.environment_of_options(name, NOTHING, found.environments[0])


def test_wrong_answers_are_told_all_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    said = vt(
        "init", str(tmp_path / "x"), "--name", "A b", "--project", "local-x",
        "--region", "us-centrl1", "--submitter", "ml@example.com", "--github", "nobody", code=2,
    )  # fmt: skip
    for option in ("name", "project", "number", "region", "submitter", "github"):
        assert f"vt init: --{option}: " in said
    assert "did you mean us-central1?" in said
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_there_are_named_and_stay(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("all:\n")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "digits.yaml").write_text("x: 1\n")
    before = files(tmp_path)
    said = vt("init", str(tmp_path), *GIVEN, code=2)
    assert "Makefile, jobs/digits.yaml" in said
    assert files(tmp_path) == before


def test_what_a_new_repository_of_github_has_is_kept(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Ours\n")
    (tmp_path / ".gitignore").write_text("*.log")
    (tmp_path / "LICENSE").write_text("MIT\n")
    vt("init", str(tmp_path), *GIVEN)
    assert (tmp_path / "README.md").read_text() == "# Ours\n"
    assert (tmp_path / ".gitignore").read_text().startswith("*.log\n\n")
    assert ".vt-local/" in (tmp_path / ".gitignore").read_text()
    vt("init", str(tmp_path), "--environment", "staging", "--write")
    assert (tmp_path / "README.md").read_text() == "# Ours\n"


def test_a_second_init_changes_nothing(tmp_path: Path) -> None:
    root = made(tmp_path / "x")
    before = files(root)
    assert "was made by `vt init` already" in vt("init", str(root), *GIVEN, code=2)
    assert files(root) == before


def test_a_folder_that_is_a_file_or_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in ("file", "file/below"):
        said = vt("init", str(tmp_path / folder), *GIVEN, code=2)
        assert said.count("\n") == 1, said
    if os.geteuid():
        (tmp_path / "closed").mkdir(mode=0o500)
        said = vt("init", str(tmp_path / "closed"), *GIVEN, code=2)
        assert "cannot be written" in said


def test_a_link_in_the_folder_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "jobs").symlink_to(tmp_path / "elsewhere")
    said = vt("init", str(tmp_path / "x"), *GIVEN, code=2)
    assert "jobs is a link" in said
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["jobs"]


@pytest.mark.parametrize("at", range(1, 36))
def test_a_kill_at_any_write_is_completed_or_undone_by_the_next_run(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rename of a file counts as a moment; a kill leaves what was there at that moment."""
    whole = files(made(tmp_path / "whole", "--name", "acme"))
    root, renames = tmp_path / "x", iter(range(1, 1000))
    real = os.replace

    def replace(source: str, target: str, **folders: int) -> None:
        if next(renames) == at:
            raise KeyboardInterrupt
        real(source, target, **folders)

    with monkeypatch.context() as killed:
        killed.setattr(os, "replace", replace)
        CliRunner().invoke(app, ["init", str(root), *GIVEN, "--name", "acme"])
    if (root / manifest.NAME).exists() and not staging.is_pending(root):
        assert files(root) == whole  # it was over before that moment
        return
    assert not (root / manifest.NAME).exists()
    vt("init", str(root), *GIVEN, "--name", "acme")
    assert files(root) == whole


def test_a_kill_before_all_was_prepared_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rename(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    root = tmp_path / "x"
    with monkeypatch.context() as killed:
        killed.setattr(Path, "rename", rename)
        CliRunner().invoke(app, ["init", str(root), *GIVEN])
    assert not root.exists()
    assert not staging.is_pending(root)
    made(root)
    assert not staging.journal(root).exists()


def test_an_edit_after_a_kill_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = made(tmp_path / "x")
    old = manifest.read(root)
    added = another("staging", old.answers)
    proposal = changes.update(root, old, old.answers.with_environment(added), old.release)
    with monkeypatch.context() as killed:
        killed.setattr(os, "replace", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            proposal.write()
    (root / "Makefile").write_text("mine\n")
    said = vt("upgrade", str(root), "--write", code=2)
    assert "Makefile was edited after a command that wrote it was interrupted" in said
    assert (root / "Makefile").read_text() == "mine\n"


def test_two_commands_do_not_write_at_once(tmp_path: Path) -> None:
    root = made(tmp_path / "x")
    with staging._lock(root):
        said = vt("init", str(root), "--environment", "staging", "--write", code=2)
    assert "another command writes into" in said


def test_equal_answers_give_equal_files() -> None:
    assert render(usual("staging"), "1.0") == render(usual("staging"), "1.0")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(format=2), "is not what `vt` wrote"),
        (lambda d: d["files"].update({"../x": d["files"]["Makefile"]}), "is no file of"),
        (lambda d: d["files"]["Makefile"].update(text="all:\n"), "has another digest"),
        (lambda d: d["answers"].update(name="A b"), "is not what `vt` wrote"),
        (lambda d: d["answers"]["environments"][0].update(name="../x"), "is not what `vt` wrote"),
    ],
)  # fmt: skip
def test_a_manifest_that_was_edited_is_refused(change, said: str, tmp_path: Path) -> None:
    root = made(tmp_path / "x")
    document = json.loads((root / manifest.NAME).read_text())
    change(document)
    (root / manifest.NAME).write_text(json.dumps(document))
    found = vt("upgrade", str(root), code=2)
    assert said in found
    assert "Traceback" not in found


def test_placeholders_are_named_and_let_nobody_in(tmp_path: Path) -> None:
    """The numbers of an example's repository would let its owner sign in."""
    ids = ("--project", "acme-ml-dev", "--number", "123456789012")
    said = vt("init", str(tmp_path / "x"), *ids)
    assert "replace octo-org/octo-repo and 123456789012 in the files" in said
    settings = yaml.safe_load((tmp_path / "x/bootstrap/Pulumi.dev.yaml").read_text())["config"]
    github = settings["vertex-training-bootstrap:github"]
    assert (github["ownerId"], github["repositoryId"]) == ("0", "0")
    assert "note" not in vt("init", str(tmp_path / "y"), *GIVEN, "--github", "acme/training")


def test_a_current_folder_that_is_gone_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for command in (("init", *GIVEN), ("init", "--environment", "qa"), ("upgrade",)):
        said = vt(*command, code=2)
        assert said.count("\n") == 1
        assert "Traceback" not in said
