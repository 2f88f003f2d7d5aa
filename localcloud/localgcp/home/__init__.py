"""The home folder of a local cloud.

====================  ==========================================================================
``layout``            ``Home`` with its files and folders; private files; the marker of homes
``environment``       environment variables of programs, installers and the server
``servers``           ports; servers of other projects as child processes; ``server.json``
====================  ==========================================================================
"""

from localgcp.home.layout import (
    BIGQUERY,
    BUILDERS,
    PASSPHRASE,
    PRIVATE_UMASK,
    REGISTRIES,
    REGISTRY,
    Home,
    Ports,
    ToolEnvironment,
    cache_dir,
    make_private,
    open_private,
    path_without,
    touch_private,
)

__all__ = [
    "BIGQUERY",
    "BUILDERS",
    "PASSPHRASE",
    "PRIVATE_UMASK",
    "REGISTRIES",
    "REGISTRY",
    "Home",
    "Ports",
    "ToolEnvironment",
    "cache_dir",
    "make_private",
    "open_private",
    "path_without",
    "touch_private",
]
