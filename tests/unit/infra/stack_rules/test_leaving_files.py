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
