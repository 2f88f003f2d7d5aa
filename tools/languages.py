"""Make Pulumi's language hosts for YAML and Node.js available: `make languages`.

Taken from PATH, where an official release of Pulumi puts them; else built from
tools/languages/go.mod: the official host of YAML, and a stand-in for that of Node.js, which no
package registry has (tools/languages/nodejs). The build takes some minutes, once for a machine.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Final

# It runs before this project is installed, and with any Python.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from vertex_training.toolchain.build import go_environment
from vertex_training.toolchain.cache import link, lock, place, publish
from vertex_training.toolchain.console import SetupError, SubprocessError, run
from vertex_training.toolchain.layout import Layout

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
    folders = [
        folder
        for folder in os.environ.get("PATH", "").split(os.pathsep)
        if folder and Path(folder).resolve() != layout.bin.resolve()
    ]
    return shutil.which(name, path=os.pathsep.join(folders)) or ""


def _built(layout: Layout) -> Path:
    """The folder of the cache that has both."""
    go = shutil.which("go")
    if go is None:
        raise SetupError("no language hosts", ["none on PATH", "no Go on PATH"], HINT)
    with lock(layout.toolchain):
        built = layout.toolchain / _cache_name(layout)
        if not all((built / name).is_file() for name in HOSTS):
            try:
                publish(built, lambda folder: _build(folder, Path(go), layout))
            except SubprocessError as error:
                raise SetupError("no language hosts", [f"go build: {error}"], HINT) from error
    return built


def _cache_name(layout: Layout) -> str:
    digest = hashlib.sha256(f"{platform.system()}-{platform.machine()}".encode())
    for name in SOURCES:
        digest.update((layout.tools / "languages" / name).read_bytes())
    return f"languages-{digest.hexdigest()[:16]}"


def _build(folder: Path, go: Path, layout: Layout) -> None:
    scratch = folder / "tmp"
    scratch.mkdir()
    command = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w"]
    for name, package in HOSTS.items():
        run(
            [*command, "-o", folder / name, package],
            what=f"building {name} (1 to 3 minutes, once)",
            log=layout.toolchain / f"{name}.log",
            cwd=layout.tools / "languages",
            env=go_environment(os.environ, scratch),
        )
    shutil.rmtree(scratch)


def main() -> int:
    """Exit codes: 0 installed, 1 not available; the reason and a hint go to stderr."""
    try:
        for name, origin in ensure_languages(Layout.of_this_checkout()).items():
            print(f"{name}: {origin}")
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
