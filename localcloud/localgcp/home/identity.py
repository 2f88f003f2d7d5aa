"""Recognizes a home folder that ``vt local`` created on this machine for this user.

A home holds what is run: jobs in a database, state with a provider in it, programs. A checkout or
an archive may bring along such a folder, by whatever name, with whatever content. So a home is
marked by what neither carries: a digest of the folder's inode, keyed by a secret of this user. It
stays a home when the checkout is moved, and a copy of it is none.

Git also writes into a home that is there: a file of a branch takes the place of an ignored one. So
git must track none below it.
"""

from __future__ import annotations

import hmac
import os
import secrets
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

from localgcp.errors import LocalCloudError
from localgcp.system import git
from localgcp.system.folders import make_folder

#: Start of the marker's name, before the digest. Creating a name is atomic.
_MARKER: Final = ".vt-local-home-"
_KEY: Final = "local-home.key"
_KEY_BYTES: Final = 32
_DIGITS: Final = 32


def mark(root: Path, cache: Path) -> None:
    """Mark a folder as a home. ``cache`` is the user's cache folder, which has the key."""
    (root / _marker(root, cache)).touch(0o600)


def is_marked(root: Path, cache: Path) -> bool:
    """Return whether a folder is a home of this user; a link to a home is not accepted."""
    return root.is_dir() and not root.is_symlink() and (root / _marker(root, cache)).is_file()


def ensure_usable(root: Path, cache: Path) -> None:
    """Accept a home, an empty folder or a missing folder.

    Raises:
        LocalCloudError: something else is there, or git tracks files in it.
    """
    hint = "point VT_LOCAL_HOME at a new folder."
    if root.is_symlink():
        raise LocalCloudError(f"{root} is a link.", hint)
    if not root.is_dir() or not any(root.iterdir()):
        return
    if not is_marked(root, cache):
        text = f"{root} is not empty, and `vt local` did not create it on this machine."
        raise LocalCloudError(
            text, f"{hint[:-1]}, or remove the folder: it may be part of a checkout."
        )
    if checkout := _tracking_checkout(root):
        text = f"git tracks files in {root}: they are part of {checkout}."
        raise LocalCloudError(text, f"{hint[:-1]}, or `git rm -r` the files.")


def _marker(root: Path, cache: Path) -> str:
    inode = str(root.stat().st_ino).encode()
    return _MARKER + hmac.new(_key(cache), inode, "sha256").hexdigest()[:_DIGITS]


def _key(cache: Path) -> bytes:
    """Return this user's secret, created at the first call; parallel calls return the same."""
    path = cache / _KEY
    if not path.exists():
        make_folder(cache, 0o700)
        new = cache / f"{_KEY}.{secrets.token_hex(8)}"
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
        try:
            with suppress(FileExistsError):
                os.link(new, path)
        finally:
            new.unlink()
    return path.read_bytes()


def _tracking_checkout(root: Path) -> Path | None:
    """Return the checkout around ``root`` whose index has files below ``root``; None without git.

    Its ``.git`` is named to git, which would also take a folder of the checkout for a repository,
    with settings that run programs. Letters' cases are no difference to some file systems.
    """
    checkout = git.checkout_around(root.parent)
    if checkout is None:
        return None
    place = f":(icase,literal){root.relative_to(checkout)}"
    named = f"--git-dir={checkout / '.git'}"
    command = git.command(checkout, named, "ls-files", "-z", "--", place)
    try:
        done = subprocess.run(command, env=git.variables(), capture_output=True, check=False)
    except FileNotFoundError:
        return None
    return checkout if done.stdout else None
