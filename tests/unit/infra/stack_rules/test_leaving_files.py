"""Secrets in what a stack sends are told at their lines, unless the stack file allows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stacks import unjudged
from vertex_training.errors import Location, Problem
from vertex_training.stack_rules import leaving_files

TOKEN = "ghp_" + "canary" * 6


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in {
        "code/train.py": f"a = 1\ntoken = '{TOKEN}'\n",
        "code/fine.py": "a = 1\n",
        "data/deep/x.txt": f"{TOKEN}\n",
        "data/one.csv": "1,2\n",
        "unsent.py": f"token = '{TOKEN}'\n",
        "image/Dockerfile": "FROM scratch\nCOPY . /\n",
        "image/a.py": f"token = '{TOKEN}'\n",
        "lib/shared/b.py": f"token = '{TOKEN}'\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def secret(file: str, line: int, **more: Any) -> Problem:
    hint = (
        "read it from Secret Manager, or leave the file out; if it is none, the stack file says "
        f'so: allowedSecrets: {{"{file}:{line}": reason}}'
    )
    what = "looks like a secret, and would leave this machine (github-token)"
    return Problem(what, hint=hint, location=Location(file, line), **more)


SENT: dict[str, Any] = {
    "packages": {"code": {"path": "code"}},
    "buckets": {
        "d": {"objects": {"all": "data", "again": "code/train.py", "gone": "none"}},
        "e": {"objects": {"one.csv": "data/one.csv"}},
    },
}


def test_packages_and_objects_are_looked_at_and_each_file_once(root: Path) -> None:
    found = leaving_files.scan(unjudged(**SENT), root)
    assert found.problems == (secret("code/train.py", 2), secret("data/deep/x.txt", 1))
    assert found.unscanned == ()
    assert leaving_files.scan(unjudged(), root).problems == ()


@pytest.mark.parametrize("place", ["code/train.py:2", "code/train.py"])
def test_what_the_stack_file_allows_may_leave(root: Path, place: str) -> None:
    allowed = unjudged(**SENT, allowedSecrets={place: "a token of an example"})
    assert leaving_files.scan(allowed, root).problems == (secret("data/deep/x.txt", 1),)


def test_what_is_too_large_to_look_at_is_named(root: Path) -> None:
    (root / "data" / "large.txt").write_text("x" * (2**20 + 1))
    assert leaving_files.scan(unjudged(**SENT), root).unscanned == ("data/large.txt",)


ARGUMENT = Problem(
    "looks like a secret",
    hint="a layer of the image keeps it: mount it as a secret of the build, or read it in the job",
    path=("images", "built", "buildArgs", "TOKEN"),
    level="warning",
)


def test_a_context_is_warned_of_by_the_places_that_its_files_have(root: Path) -> None:
    built = {
        "context": "image",
        "include": ["lib/shared"],
        "buildArgs": {"TOKEN": TOKEN, "EPOCHS": "3"},
    }
    images = {
        "given": {"digest": f"sha256:{'0' * 64}"},
        "gone": {"context": "none"},
        "built": built,
    }
    warned = [secret(name, 1, level="warning") for name in ("image/a.py", "lib/shared/b.py")]
    found = leaving_files.context_warnings(unjudged(images=images), root)
    assert list(found) == [ARGUMENT, *warned]
    (root / "image" / "weights.txt").write_text("x" * (2**20 + 1))
    places = ("image/a.py:1", "lib/shared/b.py")
    allowed = {place: "a token of an example" for place in places}
    [argument, note] = leaving_files.context_warnings(
        unjudged(images=images, allowedSecrets=allowed), root
    )
    assert argument == ARGUMENT
    bounds = "compressed, larger than 1 MiB, or beyond 16 MiB in all"
    assert note == Problem(
        f"not scanned for secrets: {bounds}: image/weights.txt",
        path=("images", "built", "context"),
        level="note",
    )
