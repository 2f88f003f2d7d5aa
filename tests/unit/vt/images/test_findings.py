"""What a check says of each image, by its pin, its context and what the registry has."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stacks import BASE
from vertex_training.errors import CommandError, Problem
from vertex_training.images import identity, pins
from vertex_training.images.identity import Source
from vertex_training.settings.model import Settings
from vertex_training_cli.images import checking
from vertex_training_cli.images.checking import ImageFinding
from vertex_training_cli.images.documents import ImageFacts
from vertex_training_cli.images.lookup import Look

DIGEST, ZEROS = "sha256:" + "5" * 64, "sha256:" + "0" * 64
OWN = "us-central1-docker.pkg.dev/acme-ml-prod/training-prod"
OUTSIDE = "us-docker.pkg.dev/acme/images/tool"
BUILD = "vt images build x --stack prod"
ORIGIN = {
    "vertex-training.context": "jobs/train",
    "org.opencontainers.image.revision": "a" * 40,
}


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


@pytest.mark.parametrize(
    ("image", "text"),
    [
        ({"context": "code"}, f"no digest is pinned: {BUILD}"),
        ({"context": "code", "digest": ZEROS}, f"no digest is pinned: {BUILD}"),
        ({"digest": ZEROS}, "no digest is pinned: vt promote x --from OTHER --to prod"),
    ],
)
def test_without_a_digest_nobody_is_asked(
    registries: Registries, root: Path, image: dict[str, Any], text: str
) -> None:
    assert found(root, image) == [finding("error", text, "image-unpinned", "")]
    assert registries.asked == [([], False, [])]


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


NO_TAG = (
    "has no tag: a clean-up of its repository may delete it: gcloud artifacts docker tags add "
    f"{OUTSIDE}@{DIGEST} {OUTSIDE}:digest-{'5' * 32}"
)


@pytest.mark.parametrize(
    ("answer", "pulls", "wanted"),
    [
        (facts("v1"), (), [IN_ORDER]),
        (facts(None), (), [IN_ORDER]),
        (facts(""), ("one", "two"),
         [finding("warning", NO_TAG, "image-untagged"), finding("warning", "one", "image-pull"),
          finding("warning", "two", "image-pull"), IN_ORDER]),
        (Look(), (), [finding("error", f"the digest is not in {OUTSIDE}: take another one",
                              "image-missing")]),
    ],
)  # fmt: skip
def test_an_image_of_others_has_a_tag_and_can_be_pulled(
    registries: Registries,
    root: Path,
    answer: Look,
    pulls: tuple[str, ...],
    wanted: list[ImageFinding],
) -> None:
    registries.answer, registries.pulls = answer, pulls
    uri = f"{OUTSIDE}@{DIGEST}"
    assert found(root, {"uri": uri}) == wanted
    assert registries.asked == [([uri], False, [uri])]


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


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        (ORIGIN, " of jobs/train at commit aaaaaaaaaaaa"),
        ({"vertex-training.context": "jobs/train"}, ""),
        ({"org.opencontainers.image.revision": "a" * 40}, ""),
    ],
)
def test_an_image_in_order_says_its_size_and_its_origin(
    registries: Registries, root: Path, labels: dict[str, str], shown: str
) -> None:
    registries.answer = facts(size=499_999, **labels)
    context = labels.get("vertex-training.context", "")
    revision = labels.get("org.opencontainers.image.revision", "")
    text = f"in order: linux/amd64, 0 MB{shown}"
    assert found(root, {"digest": DIGEST}) == [
        ImageFinding("x", "ok", text, DIGEST, revision, context, "")
    ]


def test_a_check_of_a_stack_file_has_what_registries_say_and_no_more(
    registries: Registries, root: Path
) -> None:
    given = settings(
        a={"digest": DIGEST}, b={"context": "code", "digest": DIGEST}, c={"digest": ZEROS}
    )
    assert checking.problems(given, root) == []
    registries.pulls = ("nobody pulls",)
    assert checking.problems(given, root) == [
        Problem("nobody pulls", path=("images", name), rule="image-pull", level="warning")
        for name in "ab"
    ]
    registries.answer = ARM
    assert checking.problems(settings(a={"digest": DIGEST}), root) == [
        Problem(FOR_ARM, path=("images", "a"), rule="image-platform", level="error")
    ]
    registries.answer = Look(reason="403")
    assert checking.problems(settings(a={"digest": DIGEST}), root) == [
        Problem(
            "not looked at: 403", path=("images", "a"), rule="image-not-looked-at", level="warning"
        )
    ]


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
