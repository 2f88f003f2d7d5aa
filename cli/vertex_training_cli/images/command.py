"""The command lines of ``vt images`` and ``vt promote``."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer

from localgcp.home import REGISTRY
from vertex_training.images import pins
from vertex_training.stack import settings_of
from vertex_training_cli import options
from vertex_training_cli.console import console, json_text, print_status, table
from vertex_training_cli.engine import stacks
from vertex_training_cli.images import building, lookup
from vertex_training_cli.options import Format, FormatOption, SelectedStack

WORDS: Final = {
    "current": "matches its context",
    "behind": "older than its context",
    "unknown": "unknown origin",
    "missing": "not built",
    "fixed": "pinned by digest",
}

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME...]", help="Images of the stack file. Default: all."),
]


@contextmanager
def _interruptible() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that a cancelled workflow also cancels its build."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        print_status("interrupted; only completed builds are pinned.")
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


TargetOf = Annotated[
    Path | None,
    typer.Option(
        metavar="CHECKOUT",
        help="For unreviewed code: CHECKOUT is a reviewed checkout. Refuse a stack file with a "
        "project or region other than in CHECKOUT, and write no layers to the build cache.",
    ),
]


def build(
    names: Names = None,
    stack: SelectedStack = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Engine: cloud-build, docker, podman or buildah. Default: an installed engine."
        ),
    ] = None,
    target_of: TargetOf = None,
    timeout: Annotated[
        str, typer.Option(help="Maximum build time of one image: 90s, 30m, 2h.")
    ] = "1h",
    log: Annotated[bool, typer.Option("--log", help="Print the whole log of each build.")] = False,
) -> None:
    """Build images and write their digests into the stack file.

    If the registry already has an image with the same context and options, the command uses this
    image and builds nothing.

    Example: `vt images build titanic --stack dev --timeout 30m`.

    Exit code: 0 all images are pinned, 1 a build failed (earlier images of the command stay
    pinned), 130 interrupted.
    """
    seconds = options.seconds(timeout, "--timeout")
    with _interruptible():
        ref = stacks.find(stack)
        building.check_target(ref, target_of)
        settings = settings_of(ref.root, ref.stack)
        chosen = building.names_to_build(settings, names or [])
        ref.connect_clients(print_status, address=REGISTRY)
        builder = building.ImageBuilder(
            settings, ref.root,
            lambda: building.choose_engine(engine, ref),
            seconds, with_log=log, writes_cache=target_of is None,
        )  # fmt: skip
        results = [builder.build(name) for name in chosen]
        for result in results:
            what = "built" if result.built else "unchanged" if not result.pinned else "found"
            print(f"{result.name}: {what} {result.digest} in {result.seconds:.1f} s")
        count = sum(result.built for result in results)
        print_status(f"{count} {'build' if count == 1 else 'builds'}")


def list_(stack: SelectedStack = None, format_: FormatOption = Format.TEXT) -> None:
    """List the images of a stack file, and mark outdated images. No network is needed."""
    ref = stacks.find(stack)
    settings = settings_of(ref.root, ref.stack)
    listed = [pins.pin_of(settings, name, ref.root) for name in settings.images]
    if format_ is Format.JSON:
        entries = [
            {
                "name": pin.name,
                "state": pin.state,
                "image": pin.uri,
                "digest": pin.digest,
                "context": pin.image.context or "",
                "builtFrom": pin.image.built_from or "",
                "contextNow": pin.tag,
            }
            for pin in listed
        ]
        print(json_text(entries))
    elif not listed:
        print(f"stack {settings.stack} has no images")
    else:
        rows = (
            (pin.name, WORDS[pin.state], pin.image.context or "",
             pin.digest.removeprefix("sha256:")[:12])
            for pin in listed
        )  # fmt: skip
        console().print(table("NAME", "STATE", "CONTEXT", "DIGEST", rows=rows))


def check(
    names: Names = None, stack: SelectedStack = None, format_: FormatOption = Format.TEXT
) -> None:
    """Check that the pinned images exist in their registries and that no cleanup will delete them.

    Exit code: 0 all images can be run, 1 an image cannot be run or cannot be checked.
    """
    ref = stacks.find(stack)
    settings = settings_of(ref.root, ref.stack)
    ref.connect_clients(address=REGISTRY)
    problems = lookup.findings(settings, building.known_names(settings, names or []), ref.root)
    if format_ is Format.JSON:
        print(json_text([asdict(finding) for finding in problems]))
    else:
        rows = ((finding.level, finding.name, finding.text) for finding in problems)
        console().print(table("LEVEL", "IMAGE", "FINDING", rows=rows))
    if any(finding.level == "error" for finding in problems):
        raise typer.Exit(1)


def promote(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Images to copy.")],
    source: Annotated[str, typer.Option("--from", help="Source stack, such as dev.")],
    target: Annotated[str, typer.Option("--to", help="Target stack, such as prod.")],
) -> None:
    """Copy images and their digests from one stack to another stack, without a new build.

    Each image is copied to the repository of the target stack. Then the image's digest is written
    into the target's stack file.

    Example: `vt promote titanic --from dev --to prod`.
    """
    if source == target:
        raise typer.BadParameter(f"{source} is both --from and --to.")
    with _interruptible():
        origin, goal = stacks.find(source), stacks.find(target)
        origin.connect_clients(address=REGISTRY)
        goal.connect_clients(address=REGISTRY)
        settings, wanted = (settings_of(ref.root, ref.stack) for ref in (origin, goal))
        promotions = building.plan_promotions(settings, wanted, names)
        for result in building.promote(promotions, goal.root, goal.stack):
            print(result)
