"""Find or install a Chromium for the tests of HTML pages: ``make browser``.

As root on Debian and its derivatives, a missing browser is installed as the distribution's package.
Elsewhere a message names what to install. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Final

#: Commands of Chromium on different systems.
NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: Environment variable with the path of a browser.
VARIABLE: Final = "CHROMIUM"
HINT: Final = (
    f"install chromium (Debian: apt-get install chromium), or set {VARIABLE} to one's path"
)


def find() -> str | None:
    """Path of the Chromium that ``CHROMIUM`` names, else of the first one on PATH."""
    named = os.environ.get(VARIABLE)
    for name in [named] if named else NAMES:
        if path := shutil.which(name):
            return path
    return None


def install() -> None:
    """Install the distribution's package.

    Raises:
        CalledProcessError: apt failed; its own messages are on stderr.
    """
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-qq"], ["install", "-y", "-qq", "chromium"]):
        subprocess.run(["apt-get", *arguments], check=True, env=env, stdout=subprocess.DEVNULL)


def can_install() -> bool:
    """Whether apt and root are available, and ``CHROMIUM`` names no browser."""
    return shutil.which("apt-get") is not None and os.geteuid() == 0 and VARIABLE not in os.environ


def main() -> int:
    """Exit codes: 0 a browser is installed, 1 none is."""
    if find() is None and can_install():
        print("browser: installing chromium with apt-get", flush=True)
        try:
            install()
        except subprocess.CalledProcessError as failed:
            print(f"browser: {' '.join(failed.cmd)} failed. Hint: {HINT}", file=sys.stderr)
            return 1
    path = find()
    if path is None:
        print(f"browser: there is none. Hint: {HINT}", file=sys.stderr)
        return 1
    print(f"browser: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
