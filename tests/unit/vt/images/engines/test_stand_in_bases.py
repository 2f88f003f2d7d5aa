"""A base that cannot be pulled is stood in for by name, and the Dockerfile stays as it is."""

import pytest
from google.auth.credentials import AnonymousCredentials

from localgcp.containers import mirror
from vertex_training_cli.images.engines import stand_in_bases
from vertex_training_cli.images.engines.commands import CommandEngine
from vertex_training_cli.images.registry import registry_of

DIGEST = f"sha256:{'a' * 64}"
BASE = f"python:3.11-slim-bookworm@{DIGEST}"


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr(mirror, "has_stand_in", lambda: True)


def write(folder, text):
    file = folder / "Dockerfile"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("text", "given"),
    [
        (f"# syntax=docker/dockerfile:1\nARG BASE={BASE}\nFROM $BASE\n", {}),
        (f'ARG BASE="{BASE}"\nFROM ${{BASE}} AS one\n', {}),
        (f"ARG DIGEST={DIGEST}\nFROM python:3.11-slim-bookworm@${{DIGEST}}\n", {}),
        ("ARG BASE=scratch\nFROM $BASE\n", {"BASE": BASE}),
        ("ARG BASE\nFROM $BASE\n", {"BASE": BASE}),
    ],
)
def test_a_base_that_an_argument_names_is_stood_in_for(tmp_path, made, text, given):
    found = stand_in_bases.stand_ins(write(tmp_path, text), given)
    assert list(found.values()) == [BASE]
    told = stand_in_bases.options(found)[1::2]
    assert [each.partition("=docker-image://")[0] for each in told] == [*found, BASE]


def test_without_a_stand_in_or_a_dockerfile_nothing_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(mirror, "has_stand_in", lambda: False)
    assert stand_in_bases.stand_ins(write(tmp_path, f"FROM {BASE}\n")) == {}
    assert stand_in_bases.stand_ins(tmp_path / "nothing") == {}


@pytest.mark.parametrize(
    ("engine", "project", "replaced"),
    [
        ("buildah", "local-one", True),
        ("podman", "local-one", True),
        ("docker", "local-one", False),
        ("buildah", "acme-ml-dev", False),
    ],
)
def test_an_image_for_googles_registry_is_never_built_on_a_stand_in(
    tmp_path, made, monkeypatch, engine, project, replaced
):
    monkeypatch.setenv("ARTIFACT_REGISTRY_EMULATOR_HOST", "127.0.0.1:1")
    monkeypatch.setattr("google.auth.default", lambda scopes: (AnonymousCredentials(), None))
    file = write(tmp_path, f"FROM {BASE}\n")
    at, _ = registry_of(f"us-central1-docker.pkg.dev/{project}/training-one/train")
    found = CommandEngine(engine, f"/bin/{engine}")._stand_ins(file, at, {})
    assert bool(found) is replaced
