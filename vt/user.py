"""Who runs this, for programs that must know: in a container, the system may have no such user."""

from __future__ import annotations

import os
import pwd
from collections.abc import MutableMapping


def name_user(environment: MutableMapping[str, str]) -> None:
    """Give a user without an entry in the system's list a name and a home, as login(1) does.

    The engine writes the name into its locks. Built without cgo, as its release is, it fails if
    neither the list nor USER and HOME say who it is: `user: Current requires cgo or $USER, $HOME`.
    """
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        for name, value in (("USER", str(os.getuid())), ("HOME", "/")):
            if not environment.get(name):
                environment[name] = value
