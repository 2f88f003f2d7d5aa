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

from go_programs import build, cache_name, report
from vertex_training_cli.toolchain.cache import link, lock, place, publish
from vertex_training_cli.toolchain.console import SetupError, SubprocessError
from vertex_training_cli.toolchain.layout import Layout
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
    missing = [name for name, found in origins.items() if not found]
    if missing:
        built = _built(layout)
        for name in missing:
            place(built / name, layout.bin / name)
            origins[name] = "built with Go"
    return origins


def _on_path(name: str, layout: Layout) -> str:
    folders = map(str, search_path(layout, os.environ))
    return shutil.which(name, path=os.pathsep.join(folders)) or ""


def _built(layout: Layout) -> Path:
    """The folder of the cache that has both."""
    go = shutil.which("go")
    if go is None:
        raise SetupError("no language hosts", ["none on PATH", "no Go on PATH"], HINT)
    with lock(layout.toolchain):
        sources = (layout.tools / "languages" / name for name in SOURCES)
        built = layout.toolchain / cache_name("languages", sources)
        if not all((built / name).is_file() for name in HOSTS):
            try:
                publish(built, lambda folder: _build(folder, Path(go), layout))
            except SubprocessError as error:
                raise SetupError("no language hosts", [f"go build: {error}"], HINT) from error
    return built


def _build(folder: Path, go: Path, layout: Layout) -> None:
    module = layout.tools / "languages"
    build(folder, go, HOSTS, module, layout, " (1 to 3 minutes, once)")


if __name__ == "__main__":
    sys.exit(report(ensure_languages))
