"""Install programs that checks and tests need, built with Go once for all checkouts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from vertex_training_cli.toolchain.console import SetupError, SubprocessError
from vertex_training_cli.toolchain.layout import Layout, lock, place, publish
from vertex_training_cli.toolchain.pulumi_cli import cache_name, go_build


def install_built(
    layout: Layout,
    key: str,
    packages: Mapping[str, str],
    sources: Iterable[Path],
    tried: Sequence[str],
    hint: str,
) -> None:
    """Put programs (name -> Go package) into .venv/bin, built from the module in ``sources``.

    ``sources`` are the inputs of the build, the first of them the module's go.mod.

    Raises:
        SetupError: Go is missing, or a build failed; its full output is in NAME.log of the cache.
    """
    sources = list(sources)

    def build(folder: Path) -> None:
        for name, package in packages.items():
            log = layout.toolchain / f"{name}.log"
            go_build(folder / name, package, sources[0].parent, log, f"building {name}")

    with lock(layout.toolchain):
        built = layout.toolchain / cache_name(key, sources)
        if not all((built / name).is_file() for name in packages):
            try:
                publish(built, build)
            except SubprocessError as error:
                raise SetupError(f"no usable {key}", [*tried, str(error)], hint) from error
        for name in packages:
            place(built / name, layout.bin / name)


def report(install: Callable[[Layout], Mapping[str, str]]) -> int:
    """Install programs and print where each is from.

    Returns the exit code: 0 installed, 1 not available; the reason and a hint go to stderr.
    """
    try:
        for name, origin in install(Layout.of_this_checkout()).items():
            print(f"{name}: {origin}")
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0
