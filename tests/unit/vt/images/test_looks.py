"""What was found of an image, in words: of a review, of a check, and of where it came from."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training.errors import CommandError, Problem
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.images import labels, lookup, pull_access
from vertex_training_cli.images.lookup import Look, Lookup

DIGEST, NONE = "sha256:" + "a" * 64, "sha256:" + "0" * 64
NAME = "us-docker.pkg.dev/acme-ml/images/trainer"


def facts(*platforms: str, **more: str) -> Any:
    named = {f"org.opencontainers.image.{key}": value for key, value in more.items()}
    return SimpleNamespace(platforms=platforms, labels=named)


RIGHT = Look(facts("linux/amd64", "linux/arm64"))


@pytest.mark.parametrize(
    ("uri", "is_local", "known"),
    [
        (f"{NAME}@{DIGEST}", False, None),
        (f"{NAME}@{NONE}", False, Look()),
        (f"{NAME}:v1", False, Look(reason="it is no image in Artifact Registry by digest")),
        (f"{NAME}@{DIGEST}", True,
         Look(reason="project acme-ml is in another cloud than the stack")),
        (f"us-docker.pkg.dev/local-x/i/t@{DIGEST}", True, None),
    ],
)  # fmt: skip
def test_what_needs_no_look(uri: str, is_local: bool, known: Look | None) -> None:
    assert lookup._known(uri, is_local) == known


@pytest.mark.parametrize(
    ("project", "emulator", "offline", "connects"),
    [
        ("local-a", "", False, True),
        ("local-a", "127.0.0.1:5000", False, False),
        ("local-a", "", True, False),
        ("acme-ml", "", False, False),
    ],
)
@pytest.mark.parametrize("runs", [True, False])
def test_a_review_looks_at_images_by_digest_where_the_stack_lives(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    project: str,
    emulator: str,
    offline: bool,
    connects: bool,
    runs: bool,
) -> None:
    monkeypatch.setenv("ARTIFACT_REGISTRY_EMULATOR_HOST", emulator)
    connected: list[tuple[Any, bool]] = []
    asked: list[tuple[list[str], bool]] = []

    def connect(ref: StackRef, log: Any, *, start: bool) -> None:
        log("a line")
        connected.append((ref, start))
        if not runs:
            raise CommandError("it does not run.")

    def look(uris: list[str], *, is_local: bool) -> dict[str, Look]:
        asked.append((uris, is_local))
        return dict.fromkeys(uris, Look())

    monkeypatch.setattr(lookup.connection, "connect", connect)
    monkeypatch.setattr(lookup, "look", look)
    ref = StackRef(tmp_path, "x", "one", project, "us-central1")
    one, two = f"{NAME}@{DIGEST}", f"{NAME}2@{DIGEST}"
    found = lookup.for_review(ref, {one: ["train"], NAME: ["eval"]}, [two, NAME], offline=offline)
    assert connected == [(ref, False)] * connects
    assert asked == [([] if offline else [one, two], project == "local-a")]
    assert [problem.value for problem in found.problems] == ([] if offline else [one])
    missing = "the registry has no such image"
    assert found.origins == {two: "not looked at" if offline else missing, NAME: "not looked at"}
    assert lookup.for_review(ref, {NAME: ["eval"]}, [], offline=False) == Lookup()
    assert len(connected) == connects


def test_a_review_has_problems_of_jobs_and_what_nobody_could_look_at(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: x\nruntime: python\n")
    uris = [f"us-docker.pkg.dev/acme-ml/images/{name}@{DIGEST}" for name in "abc"]
    looks = {uris[0]: Look(), uris[1]: Look(reason="403"), uris[2]: RIGHT}
    jobs = {uris[0]: ["train", "eval"], uris[1]: ["train"], uris[2]: ["x"], f"n@{DIGEST}": ["y"]}
    shown = [uris[2], uris[0], uris[1]]
    assert lookup.judge(jobs, shown, looks, tmp_path) == Lookup(
        {
            uris[2]: "its labels do not say",
            uris[0]: "the registry has no such image",
            uris[1]: "not looked at: 403",
        },
        (
            Problem(
                "image a of train, eval: the registry has no image of this digest", uris[0],
                "vt images check", rule="image-missing",
            ),
        ),
        ("b: 403",),
    )  # fmt: skip


def git(root: Path, *words: str) -> str:
    own = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    done = subprocess.run(
        ["git", "-C", str(root), *own, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_labels_of_a_build_name_its_commit_and_whether_its_folder_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text("1")
    bare = {
        "org.opencontainers.image.title": "trainer",
        "vertex-training.context": "a",
        "vertex-training.built-from": "context-1",
    }
    assert labels.labels_of("trainer", "a", "context-1", tmp_path) == bare
    for error in (FileNotFoundError("git"), subprocess.TimeoutExpired("git", 10)):

        def refuse(*_: object, error: Exception = error, **given: object) -> None:
            assert given["timeout"] == 10
            raise error

        with monkeypatch.context() as patched:
            patched.setattr(subprocess, "run", refuse)
            assert labels.labels_of("trainer", "a", "context-1", tmp_path) == bare
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "x")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "b/x").write_text("2")
    own = {"org.opencontainers.image.revision": commit}
    assert labels.labels_of("trainer", "a", "context-1", tmp_path) == bare | own
    git(tmp_path, "remote", "add", "origin", "https://u:p@git.example.org:8443/a/b.git")
    (tmp_path / "a/x").write_text("2")
    assert labels.labels_of("trainer", "a", "context-1", tmp_path) == bare | {
        "org.opencontainers.image.revision": f"{commit}-dirty",
        "org.opencontainers.image.source": "https://git.example.org:8443/a/b.git",
    }


@pytest.mark.parametrize(
    ("remote", "shown"),
    [
        ("git@git.example.org:a/b.git", "git.example.org:a/b.git"),
        ("https://git.example.org/a?token=x#y", "https://git.example.org/a"),
        ("file:///srv/a", "file:///srv/a"),
        ("/srv/a", "/srv/a"),
    ],
)
def test_an_address_has_no_password(remote: str, shown: str) -> None:
    assert labels._without_credentials(remote) == shown


def test_members_that_may_pull_are_those_of_roles_without_a_condition() -> None:
    def binding(role: str, member: Any, **more: Any) -> dict[str, Any]:
        return {"role": f"roles/artifactregistry.{role}", "members": member, **more}

    bindings: list[Any] = [
        binding("reader", ["a"]), binding("writer", ["b"]), binding("repoAdmin", ["c"]),
        binding("admin", ["d", "e"]), binding("createOnPushWriter", ["no"]),
        binding("reader", ["no"], condition={"expression": "x"}), binding("reader", "no"),
        "no", {"members": ["no"]},
    ]  # fmt: skip
    assert list(pull_access.pulling(bindings)) == ["a", "b", "c", "d", "e"]
