"""Install uv, the virtual environments, the pinned packages and this project itself."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

from vertex_training_cli.toolchain.cache import publish
from vertex_training_cli.toolchain.console import SetupError, SubprocessError, read_output, run
from vertex_training_cli.toolchain.layout import Layout

OLDEST_UV: Final = (0, 5, 0)
OFFLINE_HINT: Final = (
    "look at the message above; behind a proxy or a mirror, configure uv for it "
    "(UV_INDEX_URL, HTTPS_PROXY, SSL_CERT_FILE), then run `make setup` again"
)


def find_uv(*places: Path) -> Path | None:
    """Return the first new enough uv of these files and of PATH, or None."""
    on_path = shutil.which("uv")
    for found in (*places, *([Path(on_path)] if on_path else [])):
        try:
            if found.exists() and parse_version(read_output([found, "--version"])) >= OLDEST_UV:
                return found
        except SubprocessError:
            continue
    return None


def ensure_uv(layout: Layout) -> Path:
    """Return uv from PATH, else the pinned version, which pip installs into the cache.

    Raises:
        SetupError: neither works.
    """
    if found := find_uv():
        return found
    pin = pinned_requirement("uv", layout.requirements.read_text())
    version = pin.split()[0].partition("==")[2]
    target = layout.toolchain / f"uv-{version}"
    if not (target / "bin" / "uv").is_file():
        try:
            publish(target, lambda folder: _install_uv(pin, folder, layout))
        except SubprocessError as error:
            oldest = ".".join(map(str, OLDEST_UV))
            tried = [
                f"uv on PATH: none that runs and is {oldest} or newer",
                f"{sys.executable} -m pip install uv=={version}: {error}",
            ]
            hint = "install uv or pip for this Python, then run `make setup` again"
            raise SetupError("uv cannot be installed", tried, hint) from error
    return target / "bin" / "uv"


def _install_uv(pin: str, folder: Path, layout: Layout) -> None:
    requirement = folder / "requirement.txt"
    requirement.write_text(pin + "\n")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    run(
        [*command, "--target", folder, "-r", requirement],
        what="installing uv",
        log=layout.toolchain / "uv.log",
    )


def ensure_venv(uv: Path, layout: Layout) -> str:
    """Create .venv with the running Python unless it exists. Returns a note with its version."""
    script = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
    if layout.python.exists():
        try:
            version = read_output([layout.python, "-c", script])
            if parse_version(version) >= (3, 11, 0):
                return f"Python {version}"
        except SubprocessError:
            pass  # a broken environment (its Python is gone) is replaced below
    command = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, layout.venv]
    run_installer("creating .venv", command, layout)
    return f"Python {read_output([layout.python, '-c', script])}, new"


def install_packages(uv: Path, layout: Layout) -> str:
    """Install exactly the pinned packages by hash into .venv, and this project as editable."""
    python = ["--python", layout.python]
    sync = [uv, "pip", "sync", "--quiet", *python, "--require-hashes", layout.requirements]
    run_installer("installing packages", sync, layout)
    # A plain path entry for each source root: type checkers follow it, and start-up stays fast.
    editable = [uv, "pip", "install", "--quiet", *python, "--no-deps", "--no-build-isolation"]
    roots = [layout.root] if layout.deploy else [layout.root, layout.root / "localcloud"]
    editable += [part for root in roots for part in ("--editable", root)]
    run_installer("installing this project", editable, layout)
    return f"{count_pins(layout.requirements)} packages by hash, and this project (editable)"


def count_pins(requirements: Path) -> int:
    """How many packages a compiled requirements file pins."""
    return len(re.findall(r"^[a-z0-9].*==", requirements.read_text(), re.MULTILINE))


def run_installer(what: str, command: list[str | Path], layout: Layout) -> None:
    """Run uv, venv or pip; it takes the environment that ``command`` names.

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
    """The lines of one package with its hashes, from a compiled requirements file.

    Raises:
        SetupError: the package is not in it.
    """
    found = re.search(
        rf"^{re.escape(package)}==\S+[^\n]*\\\n(?:\s+--hash=\S+(?: \\)?\n)+", requirements, re.M
    )
    if not found:
        raise SetupError(
            f"{package} is not pinned in requirements/dev.txt", hint="restore the file"
        )
    return found[0].rstrip()


def parse_version(text: str) -> tuple[int, int, int]:
    """The first x.y.z in a text, or (0, 0, 0) if there is none."""
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else (0, 0, 0)
