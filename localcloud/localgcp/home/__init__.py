"""The folder of a local cloud: its path, its owner, and its processes.

====================  ==========================================================================
``layout``            ``Home``: its files and folders; private files
``identity``          whether a folder is a local cloud's own, and not one that a checkout carries
``environment``       the variables with which tools reach the local cloud
``child_server``      a server of somebody else as a child process
``server_info``       where the server listens, and its process
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
