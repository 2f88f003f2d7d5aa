"""``vt destroy``: what is shown before anything goes, who confirms, and what ends it before."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from vertex_training_cli.engine.plan import JobObservation, Observations
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs.objects import ObjectListing
from vertex_training_cli.up import destroy as command
from vertex_training_cli.up.destroy import Contents, Loss, Losses

REF = StackRef(Path("/srv/checkout"), "p", "first", "acme-ml", "us-central1")


def loss(kind: str, name: str, **more: Any) -> Loss:
    return Loss(kind, name, f"id-{name}", **{"detail": "", "protected": False, **more})


LOSSES = Losses(
    (
        loss("job", "train"),
        loss("job", "gone", protected=True),
        loss("bucket", "full"),
        loss("bucket", "own", own=True),
        loss("bucket", "own-emptied", own=True, empties=True),
        loss("bucket", "bare", protected=True),
        loss("bucket", "closed"),
        loss("secret", "token", detail="2 versions"),
    ),
    Counter({"a:b:C": 2, "a:b:D": 1}),
    (),
    kept_rights=2,
)
CONTENTS = Contents(
    Observations({"id-train": JobObservation("RUNNING", 3600.0)}),
    {
        "full": ObjectListing(3, False, None),
        "own": ObjectListing(1000, True, None),
        "own-emptied": ObjectListing(1, False, None),
        "bare": ObjectListing(0, False, None),
    },
    (),
)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs a destruction of these losses; the exit code, the lines, and what ran."""

    def destroy(losses: Losses, contents: Contents, *, confirmed: bool, code: int = 0, problems=()):
        ran: list[tuple[str, ...]] = []

        class Engine:
            def export_deployment(self, stack: str) -> dict[str, Any]:
                return {"of": stack}

            def run_in_foreground(self, *arguments: str) -> int:
                ran.append(arguments)
                return code

        monkeypatch.setattr(
            command, "find_losses", lambda found: losses if found == {"of": "first"} else None
        )
        monkeypatch.setattr(command, "ids_in", lambda _: {"id"})
        monkeypatch.setattr(command, "look", lambda *_: contents)
        monkeypatch.setattr(command, "_refusals", lambda *_: list(problems))
        pulumi: Any = Engine()
        found = command.destroy_stack(REF, pulumi, ["--x"], confirmed=lambda: confirmed)
        out, err = capsys.readouterr()
        return found, [" ".join(line.split()) for line in out.splitlines()], err, ran

    return destroy


def test_everything_that_would_be_lost_is_shown_before_it_goes(told) -> None:
    code, out, err, ran = told(LOSSES, CONTENTS, confirmed=True)
    stops = "not emptied, so the destroy fails (docs/operations.md)"
    assert out == [
        "A destroy of stack first in project acme-ml deletes:",
        "KIND NAME NOW",
        "job train running for 1h 0m",
        "job gone protected; state unknown",
        "bucket full 3 objects, including old versions",
        f"bucket own more than 1000 objects, including old versions; {stops}",
        "bucket own-emptied 1 object, including old versions",
        "bucket bare protected; empty",
        "bucket closed objects not counted",
        "secret token 2 versions",
        "and 3 other resources, such as accounts, grants, APIs and packages",
        "kept, because other stacks may need them: 2 grants to Google's service agents",
    ]
    assert (code, err) == (0, "")
    assert ran == [("destroy", "--stack", "first", "--yes", "--skip-preview", "--x")]


def test_what_could_not_be_looked_at_is_told(told) -> None:
    contents = Contents(Observations(not_observed="403"), {}, (), "no right")
    losses = Losses((), Counter({"a:b:C": 1}), (), kept_rights=1, taken=("x's r on y",))
    code, out, err, _ = told(losses, contents, confirmed=True, code=255)
    assert out == [
        "A destroy of stack first in project acme-ml deletes:",
        "and 1 other resources, such as accounts, grants, APIs and packages",
        "kept, because other stacks may need them: 1 grant to Google's service agents",
        "grant removed, although another stack may declare the same grant: x's r on y",
    ]
    assert err.splitlines() == [
        "vt: job states not read: 403",
        "vt: cannot check for running jobs missing from the state: no right",
        "vt: `pulumi destroy` ended with exit code 255",
    ]
    assert code == 255


def test_a_stack_that_has_nothing_is_not_destroyed(told) -> None:
    nothing = Losses((), Counter(), (), kept_rights=1)
    assert told(nothing, CONTENTS, confirmed=True) == (
        0, [], "vt: stack first has no resources to destroy\n", [],
    )  # fmt: skip


def test_what_stays_in_the_cloud_is_named_and_leaves_the_state(told) -> None:
    kept = Losses((), Counter(), (), kept=("bucket a (retainOnDelete)", "job b"))
    code, out, _, ran = told(kept, CONTENTS, confirmed=True)
    assert (code, len(ran)) == (0, 1)
    assert out[1:] == ["kept in the cloud: bucket a (retainOnDelete), job b"]


def test_what_refuses_is_told_before_anybody_is_asked(told) -> None:
    code, _, err, ran = told(
        Losses((loss("secret", "s"),), Counter(), ()), CONTENTS, confirmed=True, problems=["a", "b"]
    )
    assert (code, ran) == (3, [])
    assert err == "vt: stack first was not destroyed. No resource was deleted.\nvt: a\nvt: b\n"


def test_without_a_confirmation_nothing_is_deleted(told) -> None:
    code, out, err, ran = told(
        Losses((loss("secret", "s"),), Counter(), ()), CONTENTS, confirmed=False
    )
    assert (code, ran, len(out)) == (2, [], 3)
    assert err == "vt: no resource was deleted. To destroy the stack, add `--yes --name first`\n"


@pytest.mark.parametrize(
    ("yes", "name", "typed", "confirmed"),
    [
        (True, "first", None, True),
        (True, "", None, False),
        (True, "other", None, False),
        (False, "", None, False),
        (False, "", " first\n", True),
        (False, "", EOFError(), False),
    ],
)
def test_a_destruction_takes_the_name_of_the_stack(
    monkeypatch: pytest.MonkeyPatch, yes: bool, name: str, typed: Any, confirmed: bool
) -> None:
    asked: list[str] = []

    def answer(text: str) -> str:
        asked.append(text)
        if isinstance(typed, BaseException):
            raise typed
        return typed

    monkeypatch.setattr(command.sys.stdin, "isatty", lambda: typed is not None, raising=False)
    monkeypatch.setattr("builtins.input", answer)
    assert command._confirmation("first", yes, name)() is confirmed
    told = ["Type the name of the stack (first) to destroy it: "]
    assert asked == (told if typed is not None else [])


STACK_FILE = """\
config:
  gcp:project: acme-ml
  gcp:region: us-central1
  vertex-training:projectNumber: "210987654321"
  vertex-training:buckets: {data: {protect: PROTECT}}
"""


def refused(root: Path, losses: Losses, text: str) -> list[str]:
    """What refuses to go of a stack with this file."""
    (root / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    (root / "Pulumi.first.yaml").write_text(text)
    ref = StackRef(root, "p", "first", "acme-ml", "us-central1")
    contents = Contents(CONTENTS.jobs, CONTENTS.buckets, ("train, `vt jobs cancel 7`",))
    return [f"{each.what} ({each.hint})" for each in command._refusals(ref, losses, contents)]


@pytest.mark.parametrize("broken", ["config: {}\n", "config: [\n"])
def test_what_refuses_to_go_is_asked_of_the_state_the_cloud_and_the_file(
    tmp_path: Path, broken: str
) -> None:
    named = (loss("bucket", "full"), loss("bucket", "own", own=True), loss("bucket", "bare"))
    kept = Losses(named, Counter(), ("acme-ml-data-first",))
    ours = (
        "Pulumi.first.yaml (below `overrides` if an included file sets `protect`), have the "
        "change reviewed and deployed, then run `vt destroy` again."
    )
    found = [
        f"resource acme-ml-data-first is protected (set `protect: false` in {ours})",
        "bucket full is not empty (set forceDestroy: true on the bucket and deploy, or "
        "delete all versions of the bucket's objects.)",
    ]
    protects = STACK_FILE.replace("PROTECT", "true")
    *most, running = refused(tmp_path, kept, protects)
    assert most == found
    assert running.startswith("a running job is missing from the state: train")
    assert refused(tmp_path, kept, broken) == [*most, running]
    free, lets_go = Losses(named, Counter(), ()), STACK_FILE.replace("PROTECT", "false")
    by_file = "Pulumi.first.yaml has protect: true"
    assert [by_file in each for each in refused(tmp_path, free, protects)] == [True, False, False]
    assert refused(tmp_path, free, lets_go) == refused(tmp_path, free, broken) == [
        found[1], running,
    ]  # fmt: skip
