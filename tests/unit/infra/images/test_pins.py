"""Whether an image that a stack pins is what its folder holds."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stacks import BASE
from vertex_training.images import identity, pins
from vertex_training.images.identity import Source
from vertex_training.settings.model import Settings

DIGEST = f"sha256:{'1a' * 32}"
OWN = "us-central1-docker.pkg.dev/acme-ml-prod/training-prod/x"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.py").write_text("")
    return tmp_path


def settings(image: dict[str, Any]) -> Settings:
    return Settings.model_validate(BASE | {"images": {"x": image}})


def told(image: dict[str, Any], root: Path) -> list[tuple[str, str, str, Any]]:
    found = pins.warnings(settings(image), root)
    return [(each.what, each.value, each.hint, each.path) for each in found]


def test_written_archive_has_the_reported_identity(root: Path, tmp_path: Path) -> None:
    source = Source("code")
    context = source.read(root)
    build = identity.identity(source, context)
    assert identity.write_archive(source, context, tmp_path / "x.tar") == build
    assert identity.tag(build) == f"context-{build[:32]}"
    assert (tmp_path / "x.tar").stat().st_size > 0


def test_identity_of_a_context_never_changes(root: Path, tmp_path: Path) -> None:
    source = Source.of("code", "Dockerfile", {"B": "2", "A": "1"}, "train", ["lib"])
    assert source == Source("code", "Dockerfile", (("A", "1"), ("B", "2")), "train", ("lib",))
    assert Source.of("code", "Dockerfile", {}, None) == Source("code")
    context = source.read(root)
    build = identity.write_archive(source, context, tmp_path / "x.tar")
    options = {
        "buildArgs": {"A": "1", "B": "2"},
        "dockerfile": "Dockerfile",
        "form": 1,
        "platform": "linux/amd64",
        "target": "train",
    }
    head = json.dumps(options).encode() + b"\0"
    archive = (tmp_path / "x.tar").read_bytes()
    assert build == hashlib.sha256(head + archive).hexdigest() == identity.identity(source, context)
    assert identity.tag_of(source, root) == f"context-{build[:32]}"
    assert identity.short("x") == hashlib.sha256(b"x").hexdigest()[:32]
