"""The command lines of ``vt images`` and ``vt promote``. They import late."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from vertex_training_cli.status import print_line

if TYPE_CHECKING:
    from vertex_training.settings.model import Settings
    from vertex_training_cli.engine.stacks import StackRef

#: Exit code after Ctrl-C.
INTERRUPTED: Final = 130
_DURATION: Final = re.compile(r"([1-9][0-9]{0,5})([smh])\Z")

Stack = Annotated[
    str | None, typer.Option("--stack", "-s", help="Default: the selected stack, else local.")
]
Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME...]", help="Images of the stack file; without any: all."),
]


class Format(StrEnum):
    """How results are written."""

    TEXT = "text"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="How it is written.")]


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Errors that a person can mend become lines on stderr, and exit code 1."""
    from vertex_training.errors import ConfigError, ImageBuildError, TrainingError

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)  # a cancelled workflow ends its build
    try:
        yield
    except ConfigError as error:
        print_line(f"vt: {error.report()}")
        raise typer.Exit(1) from None
    except TrainingError as error:
        if isinstance(error, ImageBuildError):
            for line in error.last_lines:
                print_line(f"  | {_plain(line)}")
        print_line(f"vt: {error}")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print_line("vt: interrupted; nothing was pinned that was not built.")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _plain(line: str) -> str:
    from vertex_training_cli.console import plain

    return plain(line)


def _settings(ref: StackRef) -> Settings:
    """The settings of a stack; no package is built, and no job file is read."""
    from vertex_training import stack
    from vertex_training.settings import stack_files

    raw = stack_files.read_raw(stack.SCHEMA, ref.root, ref.stack)
    return stack.read_settings(raw, ref.root)


TargetOf = Annotated[
    Path | None,
    typer.Option(
        metavar="CHECKOUT",
        help="Build what nobody reviewed: refuse a stack file whose project or region is not that "
        "of this checkout, and leave no layers to other builds.",
    ),
]


def build(
    names: Names = None,
    stack: Stack = None,
    engine: Annotated[
        str | None,
        typer.Option(help="cloud-build, docker, podman or buildah; default: what is there."),
    ] = None,
    target_of: TargetOf = None,
    timeout: Annotated[str, typer.Option(help="For one image: 90s, 30m, 2h.")] = "1h",
    log: Annotated[bool, typer.Option("--log", help="Print the whole log of each build.")] = False,
) -> None:
    """Build images and write their digests into the stack file.

    An image of the same context and options that the registry has is taken as it is.

    Exit code: 0 all are pinned, 1 one is not (the stack file has those before it), 130 interrupted.
    """
    seconds = _seconds(timeout)
    with _plain_errors():
        from vertex_training_cli.engine import stacks
        from vertex_training_cli.images import building, connection, engines
        from vertex_training_cli.images.progress import progress

        ref = stacks.find(stack)
        building.check_target(ref, target_of)
        settings = _settings(ref)
        chosen = building.names_to_build(settings, names or [])
        with progress(with_log=log) as lines:
            connection.connect(ref, lines.report, start=True)
            options = building.BuildOptions(
                lambda: engines.choose(engine, ref.project, ref.region, is_local=ref.is_local),
                seconds, lines.report, lines.write_log, writes_cache=target_of is None,
            )  # fmt: skip
            results = [building.build_image(settings, name, ref.root, options) for name in chosen]
        for result in results:
            what = "built" if result.built else "unchanged" if not result.pinned else "found"
            print(f"{result.name}: {what} {result.digest} in {result.seconds:.1f} s")
        count = sum(result.built for result in results)
        print_line(f"vt: {count} {'build' if count == 1 else 'builds'}")


def list_(stack: Stack = None, format_: FormatOption = Format.TEXT) -> None:
    """List the images of a stack file, and whether they are behind their contexts. No network."""
    with _plain_errors():
        from vertex_training_cli.engine import stacks
        from vertex_training_cli.images import listing

        ref = stacks.find(stack)
        listing.show(_settings(ref), ref.root, as_json=format_ is Format.JSON)


def check(names: Names = None, stack: Stack = None, format_: FormatOption = Format.TEXT) -> None:
    """Look at the pinned images in their registries, and at what could take them away.

    Exit code: 0 all can be run, 1 one cannot, or could not be looked at.
    """
    with _plain_errors():
        from vertex_training_cli.engine import stacks
        from vertex_training_cli.images import checking, connection

        ref = stacks.find(stack)
        settings = _settings(ref)
        connection.connect(ref, lambda _: None, start=False)
        if checking.show(settings, names or [], ref.root, as_json=format_ is Format.JSON):
            raise typer.Exit(1)


def promote(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Images to copy.")],
    source: Annotated[str, typer.Option("--from", help="Stack that has them, such as dev.")],
    target: Annotated[str, typer.Option("--to", help="Stack that gets them, such as prod.")],
) -> None:
    """Copy images and their digests from one stack to another. Nothing is built.

    The image is copied to the other stack's repository, then its digest is written into the stack
    file: one line an image.
    """
    with _plain_errors():
        from vertex_training_cli.engine import stacks
        from vertex_training_cli.images import connection, promotion

        origin, goal = stacks.find(source), stacks.find(target)
        connection.connect(origin, lambda _: None, start=False)
        connection.connect(goal, lambda _: None, start=False)
        pairs = promotion.plan(_settings(origin), _settings(goal), names)
        for result in promotion.run(pairs, goal.root, goal.stack):
            print(result)


def _seconds(text: str) -> float:
    match = _DURATION.match(text)
    if match is None:
        raise typer.BadParameter(f"{text!r}; write it like 30m", param_hint="--timeout")
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]
