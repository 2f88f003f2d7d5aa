"""The inputs of a decision: digests of reports, options of a plan, and what git says."""

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.deploy import sources
from vertex_training_cli.deploy.approval import Checkout


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ({"stack": "dev", "outcome": "clean"}, None),
        ({"stack": "dev", "outcome": "different"}, None),
        (
            {"stack": "prod"},
            "cannot approve the report: the report belongs to stack 'prod', not to dev.",
        ),
        *(
            ({"outcome": each, "verdict": "No."}, "cannot approve the report: No.")
            for each in ("failed", "forbidden", "over-limit")
        ),
    ],
)
def test_a_report_on_another_stack_or_that_something_stands_against_approves_nothing(
    report, message
):
    text = json.dumps({"digest": "abc"} | report)
    if message is None:
        assert sources.approvable_digest_in(text, "dev") == "abc"
        return
    with pytest.raises(CommandError) as refused:
        sources.approvable_digest_in(text, "dev")
    assert refused.value.message == message


@pytest.mark.parametrize("content", [b"main: [\n", b"main: \xff\n", b"a: !x b\nmain: ../c\n"])
def test_a_project_file_that_only_the_engine_reads_is_refused(tmp_path, content):
    (tmp_path / "Pulumi.yaml").write_bytes(content)
    with pytest.raises(CommandError, match=r"^cannot read Pulumi\.yaml, which names the code"):
        sources._content(tmp_path / "Pulumi.yaml")


def test_a_plan_lies_in_no_folder_that_others_write_to(tmp_path, monkeypatch):
    folder = tmp_path / ".build" / "plans"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    sources.engine_plan(tmp_path, "dev")
    assert folder.stat().st_mode & 0o777 == 0o700
    with monkeypatch.context() as patched:
        uid = folder.stat().st_uid
        for other, users in ((r"\.build", [uid + 1]), ("plans", [uid, uid + 1])):
            patched.setattr(os, "geteuid", lambda users=users: users.pop(0))
            told = rf"in .*{other}: .* another user\. Hint: remove"
            with pytest.raises(CommandError, match=told):
                sources.engine_plan(tmp_path, "dev")
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CommandError, match="the path is a link"):
        sources.engine_plan(tmp_path, "dev")
    folder.unlink()
    folder.write_text("")
    with pytest.raises(CommandError, match="File exists"):
        sources.engine_plan(tmp_path, "dev")


@pytest.fixture
def git(tmp_path, monkeypatch):
    """A ``git`` on PATH that is this script."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def script(text):
        (folder / "git").write_text(f"#!/bin/sh\n{text}\n")
        (folder / "git").chmod(0o755)

    return script


def test_without_git_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommandError, match=r"git is not on PATH\. Hint: install git\."):
        sources.run_git(tmp_path, "rev-parse", "HEAD")


def commit(folder, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    given = ["-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *given, *arguments], cwd=folder, check=True)


def test_a_submodule_at_another_commit_differs_and_its_files_are_gits_business(tmp_path):
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for folder in (inner, outer):
        folder.mkdir()
        commit(folder, "init", "-q", "-b", "main")
        (folder / "a.txt").write_text("one")
        commit(folder, "add", "-A")
        commit(folder, "commit", "-qm", "first")
    commit(outer, "submodule", "--quiet", "add", str(inner), "vendor")
    commit(outer, "commit", "-qm", "second")
    assert sources.checkout(outer, "dev").changed == ()
    (outer / "vendor" / "a.txt").write_text("two")
    assert sources.checkout(outer, "dev").changed == ("vendor",)


IGNORED = (
    "Pulumi.yaml", "jobs/a.yaml", "jobs/t.yaml", "queries/q.sql", "requirements.lock",
    "shared.yaml",
)  # fmt: skip
PLACE = {
    "gcp:project": "acme-ml", "gcp:region": "us-central1", "vertex-training:projectNumber": "12345",
}  # fmt: skip
CONFIG = {
    "include": ["shared.yaml"],
    "jobs": {
        "a": {"file": "jobs/a.yaml"}, "b": {"file": "../b.yaml"}, "c": {"file": "jobs/none.yaml"},
        "d": 3, "e": {"file": 3}, "f": {"file": "jobs"},
    },
    "tuning": {"t": {"file": "jobs/t.yaml"}},
    "snapshots": {"s": {"query": "queries/q.sql", "maxBytesBilled": 1000}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "added"),
    [
        ({f"vertex-training:{key}": value for key, value in CONFIG.items()}, IGNORED),
        ({"vertex-training:jobs": ["x"], "vertex-training:include": ["shared.yaml"]},
         ("Pulumi.yaml", "requirements.lock", "shared.yaml")),
        ({"vertex-training:include": ["none.yaml"], "vertex-training:jobs": CONFIG["jobs"]},
         ("Pulumi.yaml", "jobs/a.yaml", "requirements.lock")),
        # nothing is deployed of a stack whose config is not in order
        ({"vertex-training:labels": {"secure": "x"}, "vertex-training:jobs": CONFIG["jobs"]},
         ("Pulumi.yaml", "requirements.lock")),
    ],
)  # fmt: skip
def test_files_that_a_stack_names_must_be_of_the_commit_also_where_git_ignores_them(
    tmp_path, config, added
):
    root = tmp_path / "checkout"
    (root / "jobs").mkdir(parents=True)
    (root / "queries").mkdir()
    commit(root, "init", "-q", "-b", "main")
    for name in (*IGNORED, "jobs/unnamed.yaml", "notes.yaml"):
        (root / name).write_text("config: {}\n")
    (tmp_path / "b.yaml").write_text("")
    (root / ".gitignore").write_text("*.yaml\n*.sql\nrequirements.*\n!Pulumi.dev.yaml\n")
    (root / "Pulumi.dev.yaml").write_text(json.dumps({"config": PLACE | config}))
    (root / "spaced name.txt").write_text("one")
    commit(root, "add", "-A")
    commit(root, "commit", "-qm", "first")
    ids = subprocess.run(
        ["git", "rev-parse", "HEAD", "HEAD^{tree}"],
        cwd=root, check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    assert sources.checkout(root, "dev") == Checkout(*ids, (), added)
    (root / "spaced name.txt").write_text("two")
    (root / "new.py").write_text("")
    assert sources.checkout(root, "dev") == Checkout(
        *ids, ("spaced name.txt",), tuple(sorted((*added, "new.py")))
    )


@pytest.mark.parametrize("kind", ["link", "file", "mode 0o777", "mode 0o757"])
def test_the_folder_around_plans_is_refused_where_others_may_replace_them(tmp_path, kind):
    build, mode = tmp_path / ".build", kind.removeprefix("mode ")
    if kind == "link":
        (tmp_path / "elsewhere").mkdir()
        build.symlink_to("elsewhere")
    elif kind == "file":
        build.touch()
    else:
        build.mkdir()
        build.chmod(int(mode, 8))
    hint = "`chmod go-w " if mode != kind else "remove "
    with pytest.raises(
        CommandError, match=rf"cannot store the plan .*\.build: .*\. Hint: .*{hint}"
    ):
        sources.engine_plan(tmp_path, "dev")
    assert not (tmp_path / "elsewhere" / "plans").exists()
    assert not (build / "plans").exists()


def test_a_folder_whose_mode_cannot_be_set_is_refused_where_it_has_another(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    sources.engine_plan(tmp_path, "dev")
    with monkeypatch.context() as mount:
        mount.setattr(Path, "chmod", refuse)
        sources.engine_plan(tmp_path, "dev")
    (tmp_path / ".build").chmod(0o775)
    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(CommandError, match=r"not permitted\. Hint: run `chmod "):
        sources.engine_plan(tmp_path, "dev")


def test_an_ignore_file_that_the_commit_does_not_have_hides_nothing(tmp_path):
    root = tmp_path / "checkout"
    ignored = ("ignored.yaml", "conf/a/ignored.yaml", "conf/local.yaml", "conf/[x]/b/local.yaml",
               "conf/only/b.yaml", "conf/[x]/c.yaml")  # fmt: skip
    read = ("only/b.yaml", "conf/a/only/b.yaml", "conf/x/c.yaml", "local.yaml")
    theirs = ("a.yaml", "conf/a/ignored.py", "conf/kept.yaml", "conf/hidden/Pulumi.yaml")
    for name in (*ignored, *read, *theirs, ".venv/lib/a.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("a: 1\n")
    commit(root, "init", "-q", "-b", "main")
    (root / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    (root / ".gitignore").write_bytes(
        b"\xef\xbb\xbf# \xff\r*.yaml\r\nignored.yaml\r\n\nkept.yaml\n"
    )
    (root / "conf" / ".gitignore").write_text("/only/\nlocal.yaml\n!kept.yaml\n\\[x]/c.yaml\n")
    commit(root, "add", "-f", "Pulumi.yaml", ".gitignore", "conf/.gitignore")
    commit(root, "commit", "-qm", "first")
    for folder in ("conf/hidden", "conf/a", ".venv", "only"):  # as an archive may bring them
        (root / folder / ".gitignore").write_text("*\n")
    found = sources.checkout(root, "dev")
    assert found.changed == ()
    assert found.added == tuple(sorted((*read, *theirs)))
    inside = sources.checkout(root / "conf", "dev").added
    prefix = "conf/"
    assert inside == tuple(
        sorted(name.removeprefix(prefix) for name in (*read, *theirs) if name.startswith(prefix))
    )
