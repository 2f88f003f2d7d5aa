"""Sets USER and HOME for programs that need them: in a container, the user may have no entry."""

from __future__ import annotations

import os
import pwd
from collections.abc import MutableMapping


def set_user_variables(environment: MutableMapping[str, str]) -> None:
    """Set USER and HOME, as login(1) does, if the system has no entry for this user.

    The engine writes the user's name into its locks. Built without cgo, as its release is, it fails
    without them: ``user: Current requires cgo or $USER, $HOME``.
    """
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        for name, value in (("USER", str(os.getuid())), ("HOME", "/")):
            if not environment.get(name):
                environment[name] = value
