"""What all stack files of a checkout pin."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from vertex_training.images import context as contexts
from vertex_training.images import pins
from vertex_training.images.context import Source
from vertex_training.settings.model import Image

ONE, TWO, ZERO = (f"sha256:{digit * 64}" for digit in "120")
DEV = f"""\
config:
  gcp:project: acme-ml-dev
  gcp:region: us-central1
  vertex-training:images:
    train: {{context: jobs/train, digest: "{ONE}", builtFrom: context-{"a" * 32}}}
    next: {{context: jobs/next, digest: "{ZERO}"}}
    new: {{context: jobs/new}}
"""
PROD = f"""\
config:
  gcp:project: acme-ml-prod
  gcp:region: us-central1
  vertex-training:images:
    tool: {{uri: "us-central1-docker.pkg.dev/acme-ml-dev/training-dev/tool@{TWO}"}}
    train: {{digest: "{ONE}"}}
"""
PLACE = "'gcp:project': acme, 'gcp:region': europe-west4"
REPOSITORY = "us-central1-docker.pkg.dev/acme-ml-dev/training-dev"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.dev.yaml").write_text(DEV)
    (tmp_path / "Pulumi.prod.yaml").write_text(PROD)
    return tmp_path


SHARED = "projects/acme-shared/locations/europe-west4/repositories/images"


@pytest.mark.parametrize(
    ("config", "uris"),
    [
        (f"{PLACE}, images: {{x: {{digest: '{ONE}'}}}}, registry: {{name: own}}",
         ["europe-west4-docker.pkg.dev/acme/own/x"]),
        (f"{PLACE}, images: {{x: {{digest: '{ONE}'}}}}, registry: {{existing: {SHARED}}}",
         ["europe-west4-docker.pkg.dev/acme-shared/images/x"]),
        # A repository that is not one is that stack's mistake.
        (f"{PLACE}, images: {{x: {{digest: '{ONE}'}}}}, registry: {{name: 5}}",
         ["europe-west4-docker.pkg.dev/acme/training-odd/x"]),
        (f"{PLACE}, images: {{y: {{digest: '{ONE}'}}, x: {{digest: '{TWO}'}}}}",
         [f"europe-west4-docker.pkg.dev/acme/training-odd/{name}" for name in "xy"]),
        # Without project or region only a whole name says where an image is.
        *((f"{place}, images: {{x: {{digest: '{ONE}'}}, y: {{uri: '{REPOSITORY}/y@{TWO}'}}}}",
           [f"{REPOSITORY}/y"]) for place in ("'gcp:project': acme", "'gcp:region': us-central1")),
        (f"{PLACE}, images: {{x: {{context: jobs/x}}, y: {{digest: '{ZERO}'}}}}", []),
    ],
)  # fmt: skip
def test_a_pin_is_in_the_repository_of_its_stack(
    config: str, uris: list[str], tmp_path: Path
) -> None:
    (tmp_path / "Pulumi.odd.yaml").write_text(f"config: {{{config}}}\n")
    assert [(each.stack, each.uri) for each in pins.pins_below(tmp_path)] == [
        ("odd", uri) for uri in uris
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"config: {",
        b"\xff",
        b"config: [1]",
        b"config: {gcp:project: 5, vertex-training:images: [1]}",
        b"config: {vertex-training:images: {x: 5, y: {digest: no}, z: {digest: '%s'}}}"
        % ONE.encode(),
        b"config: " + b"[" * 10_000,
    ],
)
def test_unreadable_stack_file_is_skipped(content: bytes, root: Path) -> None:
    (root / "Pulumi.odd.yaml").write_bytes(content)
    assert len(pins.pins_below(root)) == 3


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.py").write_text("")
    return tmp_path


def test_written_archive_has_the_reported_identity(sources: Path, tmp_path: Path) -> None:
    source = Source("code")
    context = source.read(sources)
    build = contexts.identity(source, context)
    assert contexts.write_archive(source, context, tmp_path / "x.tar") == build
    assert contexts.tag(build) == f"context-{build[:32]}"
    assert (tmp_path / "x.tar").stat().st_size > 0


def test_identity_of_a_context_never_changes(sources: Path, tmp_path: Path) -> None:
    source = pins.source_of(
        Image(context="code", buildArgs={"B": "2", "A": "1"}, target="train", include=["lib"])
    )
    assert source == Source("code", "Dockerfile", (("A", "1"), ("B", "2")), "train", ("lib",))
    assert pins.source_of(Image(context="code")) == Source("code")
    context = source.read(sources)
    build = contexts.write_archive(source, context, tmp_path / "x.tar")
    options = {
        "buildArgs": {"A": "1", "B": "2"},
        "dockerfile": "Dockerfile",
        "form": 1,
        "platform": "linux/amd64",
        "target": "train",
    }
    head = json.dumps(options).encode() + b"\0"
    archive = (tmp_path / "x.tar").read_bytes()
    assert build == hashlib.sha256(head + archive).hexdigest() == contexts.identity(source, context)
    assert contexts.tag_of(source, sources) == f"context-{build[:32]}"
    assert contexts.short("x") == hashlib.sha256(b"x").hexdigest()[:32]
