"""`make browser`: a Chromium for the tests of pages that people read in one.

Takes one that is there. On Debian and its kin, as root, it installs the distribution's package;
elsewhere it says what to install. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

#: What Chromium is called on different systems.
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
VARIABLE = "CHROMIUM"
HINT = f"install chromium (Debian: apt-get install chromium), or set {VARIABLE} to one's path"


def find() -> str | None:
    """The path of a Chromium: the one named by ``CHROMIUM``, else the first on PATH."""
    named = os.environ.get(VARIABLE)
    for name in [named] if named else NAMES:
        if path := shutil.which(name):
            return path
    return None


def install() -> None:
    """Install the distribution's package; raises CalledProcessError with apt's own words shown."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-qq"], ["install", "-y", "-qq", "chromium"]):
        subprocess.run(["apt-get", *arguments], check=True, env=env, stdout=subprocess.DEVNULL)


def can_install() -> bool:
    """Whether this is root on a machine with apt, and no other browser was asked for."""
    return shutil.which("apt-get") is not None and os.geteuid() == 0 and VARIABLE not in os.environ


def main() -> int:
    """Exit code 0 if there is a browser afterwards."""
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
