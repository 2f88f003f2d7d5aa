"""What a check says of each image, by its pin, its context and what the registry has."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stacks import BASE
from vertex_training.errors import CommandError
from vertex_training.images import identity, pins
from vertex_training.images.identity import Source
from vertex_training.settings.model import Settings
from vertex_training_cli.images import checking
from vertex_training_cli.images.checking import ImageFinding
from vertex_training_cli.images.documents import ImageFacts
from vertex_training_cli.images.lookup import Look

DIGEST, ZEROS = "sha256:" + "5" * 64, "sha256:" + "0" * 64
OWN = "us-central1-docker.pkg.dev/acme-ml-prod/training-prod"
BUILD = "vt images build x --stack prod"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "Dockerfile").write_text("FROM scratch\n")
    return tmp_path


class Registries:
    """What is answered for every image, what was asked, and what nobody may pull."""

    def __init__(self) -> None:
        self.answer = facts()
        self.pulls: tuple[str, ...] = ()
        self.asked: list[tuple[list[str], bool, list[str]]] = []

    def look(
        self, uris: Iterable[str], *, is_local: bool, tagged: Collection[str]
    ) -> Mapping[str, Look]:
        wanted = [*uris]
        self.asked.append((wanted, is_local, [*tagged]))
        return dict.fromkeys(wanted, self.answer)


def facts(tag: str | None = None, size: int = 1_234_567_890, **labels: str) -> Look:
    return Look(ImageFacts(DIGEST, ("linux/amd64",), labels, "", size), tag=tag)


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> Registries:
    made = Registries()
    monkeypatch.setattr(checking, "look", made.look)
    monkeypatch.setattr(checking.pull_access, "missing", lambda *_: made.pulls)
    return made


def settings(**images: dict[str, Any]) -> Settings:
    return Settings.model_validate(BASE | {"images": images})


def found(root: Path, image: dict[str, Any]) -> list[ImageFinding]:
    given = settings(x=image)
    return checking.findings(given, [pins.pin_of(given, "x", root)], root)


def finding(level: Any, text: str, rule: str = "", digest: str = DIGEST) -> ImageFinding:
    return ImageFinding("x", level, text, digest, rule=rule)


IN_ORDER = finding("ok", "in order: linux/amd64, 1,235 MB")


def test_a_pin_is_compared_with_its_context(registries: Registries, root: Path) -> None:
    image = {"context": "code", "digest": DIGEST}
    unknown = finding("warning", f"of unknown origin: {BUILD}", "image-behind")
    assert found(root, image) == [unknown, IN_ORDER]
    behind = finding("warning", f"the pin is behind its context: {BUILD}", "image-behind")
    other = f"context-{'1' * 32}"
    assert found(root, image | {"builtFrom": other}) == [behind, IN_ORDER]
    now = identity.tag_of(Source("code"), root)
    assert found(root, image | {"builtFrom": now}) == [IN_ORDER]
    assert registries.asked == [([f"{OWN}/x@{DIGEST}"], False, [])] * 3


ARM = Look(ImageFacts(DIGEST, ("linux/arm64",), {}))
FOR_ARM = "is for linux/arm64; Vertex AI runs linux/amd64"


@pytest.mark.parametrize(
    ("image", "answer", "text", "rule"),
    [
        ({}, Look(), f"the digest is not in {OWN}/x: promote it again", "image-missing"),
        ({"context": "code"}, Look(), f"the digest is not in {OWN}/x: {BUILD}", "image-missing"),
        ({}, ARM, FOR_ARM, "image-platform"),
        ({"context": "code"}, ARM, f"{FOR_ARM}: {BUILD}", "image-platform"),
        ({"context": "code"}, Look(reason="403"), "not looked at: 403", "image-not-looked-at"),
    ],
)
def test_what_cannot_be_run_is_an_error_with_the_way_out(
    registries: Registries, root: Path, image: dict[str, Any], answer: Look, text: str, rule: str
) -> None:
    registries.answer = answer
    built = {"builtFrom": identity.tag_of(Source("code"), root)} if image else {}
    assert found(root, {"digest": DIGEST} | image | built) == [finding("error", text, rule)]


def test_findings_are_a_table_or_json(
    registries: Registries, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = settings(a={"digest": DIGEST}, b={"digest": ZEROS})
    assert checking.show(given, [], root, as_json=False) is True
    unpinned = "no digest is pinned: vt promote b --from OTHER --to prod"
    assert [line.strip().split(maxsplit=2) for line in capsys.readouterr().out.splitlines()] == [
        ["LEVEL", "IMAGE", "FINDING"],
        ["ok", "a", "in order: linux/amd64, 1,235 MB"],
        ["error", "b", unpinned],
    ]
    assert checking.show(given, ["a"], root, as_json=True) is False
    assert json.loads(capsys.readouterr().out) == [
        {
            "name": "a", "level": "ok", "text": "in order: linux/amd64, 1,235 MB",
            "digest": DIGEST, "revision": "", "context": "", "rule": "",
        }
    ]  # fmt: skip
    with pytest.raises(CommandError) as refused:
        checking.show(given, ["a", "bb"], root, as_json=True)
    assert refused.value.message == "stack prod has no image 'bb'."
    assert refused.value.hint == "did you mean 'b'?"
