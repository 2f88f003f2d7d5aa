"""The environment that makes programs of this machine use the local cloud."""

from __future__ import annotations

import os
from typing import Final

from localcloud.home import Home

# Each of these would lead pulumi or a client past the local cloud, or contradict what is set.
_REMOVED: Final = (
    "PULUMI_CONFIG_PASSPHRASE_FILE",
    "PULUMI_ACCESS_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
)


def environment(home: Home, ports: tuple[int, int] | None) -> dict[str, str]:
    """This process's environment with that of the local cloud on top; see ``Home.environment``."""
    kept = {name: value for name, value in os.environ.items() if name not in _REMOVED}
    return kept | home.environment(ports)
