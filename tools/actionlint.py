"""Install actionlint, the linter of workflows: from PATH, else built from tools/actionlint/go.mod.

``make check`` runs it, and finds actionlint in .venv/bin afterwards.

actionlint is a Go program and not on PyPI. The build takes a few seconds, once for all checkouts of
a machine.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

# It runs before this project is installed, and with any Python.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from go_programs import build, cache_name, report
from vertex_training_cli.toolchain.cache import link, lock, place, publish
from vertex_training_cli.toolchain.console import SetupError, SubprocessError, read_output
from vertex_training_cli.toolchain.layout import Layout
from vertex_training_cli.toolchain.pulumi_cli import search_path
from vertex_training_cli.toolchain.python_env import parse_version

MODULE: Final = "github.com/rhysd/actionlint"
HINT: Final = (
    f"install Go (1.21 or later) or the official release of actionlint ({MODULE}), "
    "so that it is on PATH; then run this again"
)


def pinned_version(layout: Layout) -> str:
    """The version that tools/actionlint/go.mod requires. It is stated nowhere else.

    Raises:
        SetupError: the module is not required there.
    """
    text = (layout.tools / "actionlint" / "go.mod").read_text()
    found = re.search(rf"^\s*{re.escape(MODULE)} v(\S+)", text, re.MULTILINE)
    if not found:
        raise SetupError(f"tools/actionlint/go.mod does not require {MODULE}", hint="restore it")
    return found[1]


def ensure_actionlint(layout: Layout) -> str:
    """Put ``actionlint`` into .venv/bin. Returns its version and origin.

    Raises:
        SetupError: PATH has none of the pinned version or newer, and none can be built.
    """
    version, tried = pinned_version(layout), list[str]()
    target = layout.bin / "actionlint"
    for folder in search_path(layout, os.environ):
        if not os.access(folder / "actionlint", os.X_OK):
            continue
        try:
            found = parse_version(read_output([folder / "actionlint", "-version"]))
        except SubprocessError as error:
            tried.append(str(error))
            continue
        if parse_version(version) <= found < (2, 0, 0):
            link(folder / "actionlint", target)
            return f"{'.'.join(map(str, found))}, {folder / 'actionlint'}"
        tried.append(f"{folder / 'actionlint'} is {'.'.join(map(str, found))}, needed is {version}")
    go = shutil.which("go")
    if go is None:
        tried.append("no Go on PATH")
        raise SetupError("no usable actionlint", tried, HINT)
    with lock(layout.toolchain):
        built = layout.toolchain / _cache_name(layout, version)
        if not (built / "actionlint").is_file():
            try:
                publish(built, lambda folder: _build(folder, Path(go), layout))
            except SubprocessError as error:
                tried.append(f"go build of {version}: {error}")
                raise SetupError("no usable actionlint", tried, HINT) from error
        place(built / "actionlint", target)
    return f"{version}, built with Go"


def _cache_name(layout: Layout, version: str) -> str:
    folder = layout.tools / "actionlint"
    return cache_name(f"actionlint-{version}", (folder / "go.mod", folder / "go.sum"))


def _build(folder: Path, go: Path, layout: Layout) -> None:
    packages = {"actionlint": f"{MODULE}/cmd/actionlint"}
    build(folder, go, packages, layout.tools / "actionlint", layout, "")


if __name__ == "__main__":
    sys.exit(report(lambda layout: {"actionlint": ensure_actionlint(layout)}))
