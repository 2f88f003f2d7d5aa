"""Install programs that are built with Go: ``go_programs.py actionlint``, ``make languages``.

- ``actionlint``, the linter of workflows that ``make check`` runs; it is not on PyPI
- ``languages``: Pulumi's language hosts for YAML and Node.js. The official release puts both on
  PATH; of Node.js's a stand-in is built, as no package registry has it (tools/languages/nodejs)

Each is taken from PATH, else built from ``tools/GROUP/go.mod`` into the cache, once for a machine,
and is in .venv/bin afterwards. It runs before this project is installed, and with any Python.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from vertex_training_cli.toolchain.build import go_environment
from vertex_training_cli.toolchain.cache import link, lock, place, publish
from vertex_training_cli.toolchain.console import SetupError, SubprocessError, read_output, run
from vertex_training_cli.toolchain.layout import Layout
from vertex_training_cli.toolchain.pulumi_cli import search_path
from vertex_training_cli.toolchain.python_env import parse_version


class Group(NamedTuple):
    """Programs of one Go module."""

    packages: Mapping[str, str]
    """Program -> its Go package."""
    sources: tuple[str, ...]
    """Files of the module that a build depends on."""
    go: str
    """The oldest Go that builds them."""
    module: str = ""
    """The module whose version in go.mod is the oldest one that is taken from PATH."""
    note: str = ""
    """On the build."""


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
        note=" (1 to 3 minutes, once)",
    ),
}


def ensure(name: str, layout: Layout) -> dict[str, str]:
    """Put the programs of a group into .venv/bin. Returns where each is from.

    Raises:
        SetupError: one is not on PATH in a version that serves, and cannot be built.
    """
    group, tried = GROUPS[name], list[str]()
    oldest = pinned_version(name, layout) if group.module else ""
    origins = {each: _from_path(each, oldest, layout, tried) for each in group.packages}
    missing = [each for each, origin in origins.items() if not origin]
    if missing:
        built = _built(name, layout, tried)
        for each in missing:
            place(built / each, layout.bin / each)
            origins[each] = f"{oldest}, built with Go".removeprefix(", ")
    return origins


def pinned_version(name: str, layout: Layout) -> str:
    """The version of a group's module that its go.mod requires. It is stated nowhere else.

    Raises:
        SetupError: the module is not required there.
    """
    module = GROUPS[name].module
    text = (layout.tools / name / "go.mod").read_text()
    found = re.search(rf"^\s*{re.escape(module)} v(\S+)", text, re.MULTILINE)
    if not found:
        raise SetupError(f"tools/{name}/go.mod does not require {module}", hint="restore it")
    return found[1]


def _from_path(name: str, oldest: str, layout: Layout, tried: list[str]) -> str:
    """Link a program of PATH that serves into .venv/bin; where it is from, or ""."""
    for folder in search_path(layout, os.environ):
        program = folder / name
        if not os.access(program, os.X_OK):
            continue
        if not oldest:
            link(program, layout.bin / name)
            return str(program)
        try:
            found = parse_version(read_output([program, "-version"]))
        except SubprocessError as error:
            tried.append(str(error))
            continue
        version = ".".join(map(str, found))
        if parse_version(oldest) <= found < (2, 0, 0):
            link(program, layout.bin / name)
            return f"{version}, {program}"
        tried.append(f"{program} is {version}, needed is {oldest}")
    return ""


def _built(name: str, layout: Layout, tried: list[str]) -> Path:
    """The folder of the cache that has the group's programs. Raises SetupError."""
    group, module = GROUPS[name], layout.tools / name
    hint = (
        f"install Go {group.go} or later, or the official release of {' and '.join(group.packages)}"
        ", so that it is on PATH; then run this again"
    )
    go = shutil.which("go")
    if go is None:
        raise SetupError(f"no usable {name}", [*tried, "no Go on PATH"], hint)
    digest = hashlib.sha256(f"{platform.system()}-{platform.machine()}".encode())
    for source in group.sources:
        digest.update((module / source).read_bytes())
    with lock(layout.toolchain):
        built = layout.toolchain / f"{name}-{digest.hexdigest()[:16]}"
        if not all((built / each).is_file() for each in group.packages):
            try:
                publish(built, lambda folder: _build(folder, Path(go), group, module, layout))
            except SubprocessError as error:
                text = f"go build: {error}"
                raise SetupError(f"no usable {name}", [*tried, text], hint) from error
    return built


def _build(folder: Path, go: Path, group: Group, module: Path, layout: Layout) -> None:
    """Build the programs into ``folder``; full output of a failure is in NAME.log of the cache."""
    scratch = folder / "tmp"
    scratch.mkdir()
    command = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false"]
    for name, package in group.packages.items():
        run(
            [*command, "-o", folder / name, package],
            what=f"building {name}{group.note}",
            log=layout.toolchain / f"{name}.log",
            cwd=module,
            env=go_environment(os.environ, scratch),
        )
    shutil.rmtree(scratch)


def main(name: str) -> int:
    """Exit codes: 0 installed, 1 not available; the reason and a hint go to stderr."""
    try:
        for each, origin in ensure(name, Layout.of_this_checkout()).items():
            print(f"{each}: {origin}")
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
