"""Install actionlint, the linter of workflows: from PATH, else built from tools/actionlint/go.mod.

``make check`` runs it, and finds actionlint in .venv/bin afterwards.

actionlint is a Go program and not on PyPI. The build takes a few seconds, once for all checkouts of
a machine.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

# It runs before this project is installed, and with any Python.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from go_programs import install_built, report
from vertex_training_cli.toolchain.console import SetupError
from vertex_training_cli.toolchain.layout import Layout, link
from vertex_training_cli.toolchain.pulumi_cli import find_on_path

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
    version = pinned_version(layout)
    found = find_on_path(layout, "actionlint", "-version", version)
    if isinstance(found, tuple):
        link(found[0], layout.bin / "actionlint")
        return f"{found[1]}, {found[0]}"
    sources = [layout.tools / "actionlint" / name for name in ("go.mod", "go.sum")]
    packages = {"actionlint": f"{MODULE}/cmd/actionlint"}
    install_built(layout, "actionlint", packages, sources, found, HINT)
    return f"{version}, built with Go"


if __name__ == "__main__":
    sys.exit(report(lambda layout: {"actionlint": ensure_actionlint(layout)}))
