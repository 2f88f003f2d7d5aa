"""Make Pulumi's language hosts for YAML and Node.js available: `make languages`.

Taken from PATH, where an official release of Pulumi puts them; else built from
tools/languages/go.mod: the official host of YAML, and a stand-in for that of Node.js, which no
package registry has (tools/languages/nodejs). The build takes some minutes, once for a machine.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

# It runs before this project is installed, and with any Python.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from go_programs import install_built, report
from vertex_training_cli.toolchain.layout import Layout, link
from vertex_training_cli.toolchain.pulumi_cli import search_path

#: Name of a host -> the Go package that it is built of.
HOSTS: Final = {
    "pulumi-language-yaml": "github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml",
    "pulumi-language-nodejs": "./nodejs",
}
SOURCES: Final = ("go.mod", "go.sum", "nodejs/main.go")
HINT: Final = (
    "install Go 1.25 or later, or Pulumi's official release, so that it is on PATH; then run "
    "`make languages` again"
)


def ensure_languages(layout: Layout) -> dict[str, str]:
    """Put the hosts into .venv/bin. Returns where each is from.

    Raises:
        SetupError: one is not on PATH and cannot be built.
    """
    origins = {name: _on_path(name, layout) for name in HOSTS}
    for name, found in origins.items():
        if found:
            link(Path(found), layout.bin / name)
    missing = {name: HOSTS[name] for name, found in origins.items() if not found}
    if missing:
        sources = [layout.tools / "languages" / name for name in SOURCES]
        install_built(layout, "languages", missing, sources, ["none on PATH"], HINT)
    return origins | dict.fromkeys(missing, "built with Go")


def _on_path(name: str, layout: Layout) -> str:
    folders = map(str, search_path(layout))
    return shutil.which(name, path=os.pathsep.join(folders)) or ""


if __name__ == "__main__":
    sys.exit(report(ensure_languages))
