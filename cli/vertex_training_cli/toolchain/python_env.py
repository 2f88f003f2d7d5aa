"""Installs uv, the virtual environments, the pinned packages and this project.

The policy SDK needs an older protobuf than Google's clients, so its pack has an environment of its
own. The pack sees none of the packages in .venv but ``vertex_training``, of which policies take
names and patterns of secrets.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

from vertex_training_cli.toolchain.console import SetupError, SubprocessError, read_version, run
from vertex_training_cli.toolchain.layout import Layout

OLDEST_UV: Final = (0, 5, 0)
OLDEST_PYTHON: Final = (3, 11, 0)
OFFLINE_HINT: Final = (
    "read the message above. Behind a proxy or with a mirror, configure uv "
    "(UV_INDEX_URL, HTTPS_PROXY, SSL_CERT_FILE), then run `make setup` again"
)
#: Options of installers: nothing is built, because build requirements have no pinned hash.
_PINNED: Final = ("--require-hashes", "--only-binary", ":all:")


def find_uv(*places: Path) -> Path | None:
    """Return the first sufficiently new uv among these files and on PATH, or None."""
    on_path = shutil.which("uv")
    for candidate in (*places, *([Path(on_path)] if on_path else [])):
        try:
            if candidate.exists() and read_version(candidate, "--version") >= OLDEST_UV:
                return candidate
        except SubprocessError:
            continue
    return None


def uv_command(uv: Path, *arguments: str | Path) -> list[str | Path]:
    """Return a uv command line, with absolute paths in ``arguments``.

    It starts in ``/``: uv reads settings from its folder and those above it, so none of a checkout.
    """
    return [uv, "--directory", "/", *arguments]


def ensure_venv(layout: Layout) -> Path:
    """Create .venv with the running Python unless it exists; return uv.

    Where PATH has no suitable uv, pip installs the pinned version into .venv.

    Raises:
        SetupError: neither works.
    """
    script = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
    try:
        is_suitable = read_version(layout.python, "-c", script) >= OLDEST_PYTHON
    except SubprocessError:  # there is none, or it is broken: its Python is gone
        is_suitable = False
    uv = find_uv(layout.bin / "uv") if is_suitable else find_uv()
    if uv and not is_suitable:
        options = ("--quiet", "--clear", "--python", sys.executable)
        run_installer("creating .venv", uv_command(uv, "venv", *options, layout.venv), layout)
    if uv:
        return uv
    pins = layout.toolchain / "uv.txt"
    pins.write_text(pinned_requirement("uv", layout.requirements.read_text()) + "\n")
    create_environment(layout.venv, pins, "uv", layout, None, python=sys.executable)
    return layout.bin / "uv"


def install_packages(uv: Path, layout: Layout) -> None:
    """Install exactly the pinned packages by hash into .venv, and this project as editable."""
    python = ("--quiet", "--python", layout.python)
    sync = uv_command(uv, "pip", "sync", *python, "--require-hashes", layout.requirements)
    run_installer("installing packages", sync, layout)
    # A plain path entry for each source root: type checkers follow it, and start-up stays fast.
    editable = uv_command(uv, "pip", "install", *python, "--no-deps", "--no-build-isolation")
    roots = [layout.root] if layout.deploy else [layout.root, layout.root / "localcloud"]
    editable += [part for root in roots for part in ("--editable", root)]
    run_installer("installing this project", editable, layout)


def install_policy_packages(layout: Layout, uv: Path | None) -> None:
    """Recreate the environment of the policy pack, by ``uv`` or else by venv and pip."""
    pins = layout.policy_requirements
    create_environment(layout.policy_venv, pins, "the policy pack", layout, uv)
    if layout.environment:
        # Also after a newer release takes its place. A checkout's policy/__main__.py finds it.
        for folder in _policy_packages(layout):
            (folder / "vertex_training").symlink_to(layout.root / "vertex_training")


def has_policy_packages(layout: Layout) -> bool:
    """Return True if the policy pack's environment exists, with the package if it is needed."""
    if not os.access(layout.policy_venv / "bin" / "python", os.X_OK):
        return False
    ours = (layout.root / "vertex_training").resolve()
    links = (folder / "vertex_training" for folder in _policy_packages(layout))
    return layout.environment is None or any(link.resolve() == ours for link in links)


def _policy_packages(layout: Layout) -> list[Path]:
    # One of them: lib64 is a link to lib where it exists.
    return sorted(layout.policy_venv.glob("lib/python*/site-packages"))


def create_environment(
    folder: Path, pins: Path, what: str, layout: Layout, uv: Path | None, python: str | Path = ""
) -> None:
    """Recreate the environment ``folder`` of ``what`` with packages that ``pins`` lists by hash.

    Raises:
        SetupError: an installer failed.
    """
    python, created = python or layout.python, folder / "bin" / "python"
    if uv:
        create = uv_command(uv, "venv", "--quiet", "--clear", "--python", python, folder)
        install = uv_command(uv, "pip", "sync", "--quiet", "--python", created, *_PINNED, pins)
    else:
        create = [python, "-m", "venv", "--clear", folder]
        install = [created, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        install += [*_PINNED, "-r", pins]
    run_installer(f"creating the environment of {what}", create, layout)
    run_installer(f"installing {what}'s packages", install, layout)


def run_installer(what: str, command: list[str | Path], layout: Layout) -> None:
    """Run uv, venv or pip in the environment that ``command`` names.

    Raises:
        SetupError: it failed, with its last lines.
    """
    environment = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "UV_PYTHON")}
    environment |= {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1"}
    try:
        run(command, what=what, log=layout.toolchain / "uv.log", cwd=layout.root, env=environment)
    except SubprocessError as error:
        shown = " ".join(str(part) for part in command)
        raise SetupError(f"{what} failed", [f"{shown}: {error}"], OFFLINE_HINT) from error


def pinned_requirement(package: str, requirements: str) -> str:
    """Return the lines of one package, with its hashes, in a compiled requirements file.

    Raises:
        SetupError: the package is not in it.
    """
    form = rf"^{re.escape(package)}==\S+[^\n]*\\\n(?:\s+--hash=\S+(?: \\)?\n)+"
    if match := re.search(form, requirements, re.MULTILINE):
        return match[0].rstrip()
    raise SetupError(
        f"{package} is not pinned in requirements/dev.txt", hint="restore requirements/dev.txt"
    )
