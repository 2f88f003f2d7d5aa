"""What the commands of images print, and how they find registries and what builds."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stacks import unjudged
from tests.unit.vt.images.conftest import write_stack
from vertex_training.images import identity
from vertex_training.images.identity import Source
from vertex_training_cli.images import building, checking, command, connection, engines, promotion
from vertex_training_cli.images.building import BuildOptions, BuildResult
from vertex_training_cli.images.promotion import Promotion

DIGEST = "sha256:" + "0123456789ab" + "c" * 52
OWN = "us-central1-docker.pkg.dev/acme-ml-prod/training-prod"
OTHER = f"context-{'1' * 32}"


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """The stacks whose registry was connected, and whether the local cloud may be started."""
    found: list[tuple[str, bool]] = []

    def connect(ref: Any, log: Any, *, start: bool) -> None:
        log(f"asked for {ref.stack}")
        found.append((ref.stack, start))

    monkeypatch.setattr(connection, "connect", connect)
    return found


def test_a_list_has_each_image_and_how_it_compares_with_its_context(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = identity.tag_of(Source("jobs/train"), root)
    built = {"context": "jobs/train", "digest": DIGEST}
    given = unjudged(
        images={
            "a": built | {"builtFrom": now},
            "b": built | {"builtFrom": OTHER},
            "c": built,
            "d": {"context": "jobs/train"},
            "e": {"uri": f"us-docker.pkg.dev/acme/images/tool@{DIGEST}"},
        }
    )
    command.show(given, root, as_json=False)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "NAME  STATE                   CONTEXT     DIGEST",
        "a     built from its context  jobs/train  0123456789ab",
        "b     behind its context      jobs/train  0123456789ab",
        "c     unknown origin          jobs/train  0123456789ab",
        "d     not built               jobs/train",
        "e     by digest                           0123456789ab",
    ]
    command.show(given, root, as_json=True)
    rows = [
        ("a", "current", f"{OWN}/a", DIGEST, "jobs/train", now, now),
        ("b", "behind", f"{OWN}/b", DIGEST, "jobs/train", OTHER, now),
        ("c", "unknown", f"{OWN}/c", DIGEST, "jobs/train", "", now),
        ("d", "missing", f"{OWN}/d", "", "jobs/train", "", now),
        ("e", "fixed", "us-docker.pkg.dev/acme/images/tool", DIGEST, "", "", ""),
    ]
    fields = ("name", "state", "image", "digest", "context", "builtFrom", "contextNow")
    assert json.loads(capsys.readouterr().out) == [
        dict(zip(fields, row, strict=True)) for row in rows
    ]


def test_a_list_without_images_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.show(unjudged(), root, as_json=False)
    assert capsys.readouterr().out == "stack prod has no images\n"
    command.show(unjudged(), root, as_json=True)
    assert capsys.readouterr().out == "[]\n"


@pytest.mark.parametrize("wrong", [True, False])
def test_a_check_connects_the_registry_and_starts_nothing(
    vt: Any, root: Path, connected: Any, wrong: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def show(settings: Any, names: Any, where: Path, *, as_json: bool) -> bool:
        asked.append((settings.stack, names, where, as_json))
        return wrong

    monkeypatch.setattr(checking, "show", show)
    assert vt("images", "check", "--stack", "one").exit_code == wrong
    assert vt("images", "check", "train", "--stack", "one", "--format", "json").exit_code == wrong
    assert asked == [("one", [], root, False), ("one", ["train"], root, True)]
    assert connected == [("one", False), ("one", False)]


def test_a_promotion_connects_both_registries_and_prints_a_line_an_image(
    vt: Any, root: Path, connected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def run(found: list[Promotion], where: Path, stack: str) -> list[str]:
        asked.append(([each.name for each in found], where, stack))
        return ["line one", "line two"]

    monkeypatch.setattr(promotion, "run", run)
    write_stack(root, "one", "local-one", f"{{digest: '{DIGEST}'}}")
    done = vt("promote", "train", "--from", "one", "--to", "two")
    assert (done.exit_code, done.output) == (0, "line one\nline two\n")
    assert connected == [("one", False), ("two", False)]
    assert asked == [(["train"], root, "two")]


class Builds:
    """What became of each image, in turn, and how each was to be built."""

    def __init__(self, *results: BuildResult) -> None:
        self.results = list(results)
        self.asked: list[tuple[str, str, Path]] = []
        self.options: list[BuildOptions] = []

    def build_image(self, settings: Any, name: str, root: Path, how: BuildOptions) -> BuildResult:
        self.asked.append((settings.stack, name, root))
        self.options.append(how)
        how.report(f"builds {name}")
        how.write_log(f"step of {name}")
        return self.results.pop(0)


@pytest.mark.parametrize(
    ("results", "options", "out", "err"),
    [
        ([], (), "", "vt: 0 builds\n"),
        ([(True, True)], (), f"train: built {DIGEST} in 1.2 s\n",
         "vt: builds train\nvt: 1 build\n"),
        ([(False, True)], ("--log",), f"train: found {DIGEST} in 1.2 s\n",
         "vt: builds train\nstep of train\nvt: 0 builds\n"),
        ([(True, True), (True, False)], (),
         f"train: built {DIGEST} in 1.2 s\ntrain2: built {DIGEST} in 1.2 s\n",
         "vt: builds train\nvt: builds train2\nvt: 2 builds\n"),
        ([(False, False)], (), f"train: unchanged {DIGEST} in 1.2 s\n",
         "vt: builds train\nvt: 0 builds\n"),
    ],
)  # fmt: skip
def test_a_build_prints_what_became_of_each_image(
    vt: Any,
    root: Path,
    connected: Any,
    monkeypatch: pytest.MonkeyPatch,
    results: list[tuple[bool, bool]],
    options: tuple[str, ...],
    out: str,
    err: str,
) -> None:
    names = ["train", "train2"][: len(results)]
    made = Builds(
        *(
            BuildResult(name, DIGEST, OTHER, built, pinned, 1.234)
            for name, (built, pinned) in zip(names, results, strict=True)
        )
    )
    monkeypatch.setattr(building, "build_image", made.build_image)
    monkeypatch.setattr(building, "names_to_build", lambda *_: names)
    done = vt("images", "build", "--stack", "one", *options)
    start = "vt: asked for one\n"
    assert (done.exit_code, done.stdout, done.stderr) == (0, out, start + err)
    assert connected == [("one", True)]
    assert made.asked == [("one", name, root) for name in names]


@pytest.mark.parametrize(
    ("options", "seconds", "engine", "writes_cache"),
    [
        ((), 3600, None, True),
        (("--timeout", "90s", "--engine", "podman"), 90, "podman", True),
        (("--target-of", "."), 3600, None, False),
    ],
)
def test_a_build_takes_an_engine_and_a_time_and_layers_of_branches_stay_apart(
    vt: Any,
    root: Path,
    connected: Any,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    seconds: float,
    engine: str | None,
    writes_cache: bool,
) -> None:
    made = Builds(BuildResult("train", DIGEST, OTHER, True, True, 0))
    chosen: list[Any] = []
    monkeypatch.setattr(building, "build_image", made.build_image)
    monkeypatch.setattr(engines, "choose", lambda *some, **more: chosen.append((some, more)))
    assert vt("images", "build", "--stack", "one", *options).exit_code == 0
    [how] = made.options
    assert (how.timeout, how.writes_cache) == (seconds, writes_cache)
    assert chosen == []
    how.choose_engine()
    assert chosen == [((engine, "local-one", "us-central1"), {"is_local": True})]


def test_a_cancelled_build_is_an_interrupt_that_says_what_was_pinned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), command._interruptible():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
    said = "vt: interrupted; nothing was pinned that was not built.\n"
    assert capsys.readouterr().err == said
    with command._interruptible():
        pass
    assert signal.getsignal(signal.SIGTERM) is before
    assert capsys.readouterr().err == ""
