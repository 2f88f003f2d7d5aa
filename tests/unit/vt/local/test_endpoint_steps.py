"""The steps of `vt local up --endpoints FILE`, with images and with commands in their place."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import pytest

from localgcp.home import Home
from vertex_training.errors import ImageBuildError
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.images import registry
from vertex_training_cli.local import endpoint_form, image_form
from vertex_training_cli.local.image_form import ImageForm

IMAGES, MODELS = "vertex-training:images", "vertex-training:models"
NO_IMAGE = f"us-docker.pkg.dev/this-machine/none/none@sha256:{'0' * 64}"
CONFIG: dict[str, Any] = {
    "gcp:project": "local-x",
    IMAGES: {"serve": {"context": "serve"}, "other": {"context": "other"}, "of": {"digest": "x"}},
    MODELS: {
        "a": {"container": "${images.serve}", "run": 1},
        "b": {"container": "${images.of}"},
        "c": {"container": "${images.serve}x"},
        "d": {"container": {"image": "i"}},
        "e": {},
    },
}
FORM = ImageForm("local-endpoint", (), {"serve": "serve", "other": "other"}, CONFIG)


@pytest.fixture
def ref(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StackRef:
    (tmp_path / "serve").mkdir()
    text = 'FROM x\nENTRYPOINT ["python", "-m", "serve", "--port=1"]\nUSER x\n'
    (tmp_path / "serve" / "Dockerfile").write_text(text)
    monkeypatch.setattr(image_form, "missing", lambda _: "")
    monkeypatch.setattr(image_form, "settings_of", lambda *given: given)
    monkeypatch.setattr(registry, "connect", lambda *_, start: start or pytest.fail("no start"))
    return StackRef(tmp_path, "demo", "local", "local-x", "us-central1")


def with_images(ref: StackRef, lines: list[str]) -> tuple[ImageForm, Any]:
    home = Home(ref.root / "home", ref.root)
    return endpoint_form._with_images(  # pyright: ignore[reportPrivateUsage]
        home, ref, FORM, lines.append
    )


def test_images_that_are_built_are_pinned_and_models_stay(
    ref: StackRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(settings: Any, form: ImageForm, given: StackRef) -> list[tuple[str, Any]]:
        assert (settings, form, given) == ((ref.root, "local-endpoint"), FORM, ref)
        return [("serve", {"digest": "sha256:1"})]

    monkeypatch.setattr(image_form, "built_pins", build)
    lines: list[str] = []
    assert with_images(ref, lines) == (FORM, {"serve": {"digest": "sha256:1"}})
    assert lines == []


def test_where_a_build_fails_its_log_is_told_and_commands_take_its_place(
    ref: StackRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(*_: Any) -> None:
        raise ImageBuildError("serve was not built.", ["one", "two"])

    monkeypatch.setattr(image_form, "built_pins", build)
    before, lines = copy.deepcopy(CONFIG), list[str]()
    form, pins = with_images(ref, lines)
    assert lines == [
        "  | one",
        "  | two",
        "serve, other on this host, not in a container: serve was not built.",
    ]
    command = [sys.executable, "-m", "serve", "--port=1"]
    container = {"image": NO_IMAGE, "command": command, "env": {"PYTHONPATH": ""}}
    models = CONFIG[MODELS] | {"a": {"container": container, "run": 1}}
    assert (form, pins) == (ImageForm(FORM.stack, (), FORM.images, CONFIG | {MODELS: models}), {})
    assert before == CONFIG
