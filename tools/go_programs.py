"""Install programs written in Go: ``go_programs.py actionlint``, ``make languages``.

- ``actionlint``, the linter of workflows that ``make check`` runs; it is not on PyPI
- ``languages``: Pulumi's language hosts for YAML and Node.js. The official release puts both on
  PATH. No package registry has the host for Node.js: a stand-in is built (tools/languages/nodejs)

Each program is taken from PATH, else built from the ``go.mod`` of its folder, once for a machine,
and put into .venv/bin. This script runs before the project is installed, with any Python.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from vertex_training_cli.toolchain.console import SetupError, SubprocessError
from vertex_training_cli.toolchain.layout import Layout, link, lock, place, publish
from vertex_training_cli.toolchain.pulumi_cli import cache_name, find_on_path, go_build, search_path


class Group(NamedTuple):
    """Programs of one Go module."""

    packages: Mapping[str, str]
    """Program -> Go package."""
    sources: tuple[str, ...]
    """Files of the module that a build depends on."""
    go: str
    """Oldest Go version that can build them."""
    module: str = ""
    """Module whose version in go.mod is the oldest version accepted on PATH."""


GROUPS: Final[Mapping[str, Group]] = {
    "actionlint": Group(
        {"actionlint": "github.com/rhysd/actionlint/cmd/actionlint"},
        ("go.mod", "go.sum"),
        "1.21",
        module="github.com/rhysd/actionlint",
    ),
    "languages": Group(
        {
            "pulumi-language-yaml": "github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml",
            "pulumi-language-nodejs": "./nodejs",
        },
        ("go.mod", "go.sum", "nodejs/main.go"),
        "1.25",
    ),
}


def ensure(name: str, layout: Layout) -> dict[str, str]:
    """Put the programs of a group into .venv/bin. Return the source of each.

    Raises:
        SetupError: a program is not on PATH in an accepted version, and cannot be built.
    """
    group, origins, tried = GROUPS[name], dict[str, str](), list[str]()
    oldest = pinned_version(name, layout) if group.module else ""
    for package in group.packages:
        program, version = _find(package, oldest, layout, tried)
        if program is not None:
            link(program, layout.bin / package)
            origins[package] = f"{version}, {program}".removeprefix(", ")
    if missing := [package for package in group.packages if package not in origins]:
        built = _built(name, layout, tried)
        for package in missing:
            place(built / package, layout.bin / package)
            origins[package] = f"{oldest}, built with Go".removeprefix(", ")
    return origins


def pinned_version(name: str, layout: Layout) -> str:
    """Return the version of a group's module in its go.mod, the only file with this version.

    Raises:
        SetupError: go.mod does not require the module.
    """
    module = GROUPS[name].module
    text = (layout.tools / name / "go.mod").read_text()
    match = re.search(rf"^\s*{re.escape(module)} v(\S+)", text, re.MULTILINE)
    if not match:
        raise SetupError(f"tools/{name}/go.mod does not require {module}", hint="restore the file")
    return match[1]


def _find(name: str, oldest: str, layout: Layout, tried: list[str]) -> tuple[Path | None, str]:
    """Return an accepted program on PATH and its version; add reasons to ``tried``."""
    if not oldest:
        folders = os.pathsep.join(map(str, search_path(layout)))
        program = shutil.which(name, path=folders)
        return (Path(program) if program else None), ""
    result = find_on_path(layout, name, "-version", oldest)
    if isinstance(result, tuple):
        return result
    tried += result
    return None, ""


def _built(name: str, layout: Layout, tried: list[str]) -> Path:
    """Return the cache folder with the group's programs.

    Raises:
        SetupError: Go is missing, or a build failed; its full output is in NAME.log of the cache.
    """
    group, module = GROUPS[name], layout.tools / name
    sources = [module / source for source in group.sources]

    def build(folder: Path) -> None:
        for target, package in group.packages.items():
            go_build(
                folder / target,
                package,
                module,
                layout.toolchain / f"{target}.log",
                f"building {target}",
            )

    with lock(layout.toolchain):
        built = layout.toolchain / cache_name(name, sources)
        if not all((built / package).is_file() for package in group.packages):
            try:
                publish(built, build)
            except SubprocessError as error:
                hint = (
                    f"put Go {group.go} or later, or the official release of "
                    f"{' and '.join(group.packages)}, on PATH; then run this command again"
                )
                raise SetupError(
                    f"no usable {name} was found", [*tried, str(error)], hint
                ) from error
    return built


def main(name: str) -> int:
    """Install. Exit codes: 0 installed, 1 not available; stderr has the reason and a hint."""
    try:
        for program, origin in ensure(name, Layout.of_this_checkout()).items():
            print(f"{program}: {origin}")
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
