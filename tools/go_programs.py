"""What programs built with Go for checks and tests have in common; the cache has each once."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from vertex_training_cli.toolchain.build import go_environment
from vertex_training_cli.toolchain.console import SetupError, run
from vertex_training_cli.toolchain.layout import Layout


def cache_name(name: str, sources: Iterable[Path]) -> str:
    """Name of a build in the cache: ``name``, and a digest of the machine and the sources."""
    digest = hashlib.sha256(f"{platform.system()}-{platform.machine()}".encode())
    for source in sources:
        digest.update(source.read_bytes())
    return f"{name}-{digest.hexdigest()[:16]}"


def build(
    folder: Path, go: Path, packages: Mapping[str, str], module: Path, layout: Layout, note: str
) -> None:
    """Build programs (name -> Go package) of the module in ``module`` into ``folder``.

    Raises:
        SubprocessError: a build failed; its full output is in NAME.log of the cache.
    """
    scratch = folder / "tmp"
    scratch.mkdir()
    command = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false"]
    for name, package in packages.items():
        run(
            [*command, "-o", folder / name, package],
            what=f"building {name}{note}",
            log=layout.toolchain / f"{name}.log",
            cwd=module,
            env=go_environment(os.environ, scratch),
        )
    shutil.rmtree(scratch)


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
