"""Prepares the process of every command: streams, proxies, USER and HOME."""

from __future__ import annotations

import io
import os
import pwd
import sys
from collections.abc import MutableMapping
from typing import Final

LOOPBACK: Final = ("127.0.0.1", "localhost")
#: Variables with the hosts that need no proxy (github.com/grpc/grpc, doc/environment_variables.md).
#: gRPC reads the first that is set of the first two; other programs read the last two.
NO_PROXY_VARIABLES: Final = ("no_grpc_proxy", "no_proxy", "NO_PROXY")


def prepare() -> None:
    """Set up the streams and variables of this process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A log may have characters that this terminal cannot show: replace them.
            stream.reconfigure(errors="replace")
    exempt_loopback(os.environ)
    set_user_variables(os.environ)


def exempt_loopback(environment: MutableMapping[str, str]) -> None:
    """Exclude this machine's addresses from the proxies that an environment sets.

    The engine, its plugins and the local cloud connect to each other on 127.0.0.1. Go uses no proxy
    there. gRPC's C core, which Python uses, and ``requests`` do: behind a proxy, not even ``pulumi
    preview`` would reach its own engine. Nothing changes where no proxy is set.
    """
    if not any(_is_proxy_variable(name) and value for name, value in environment.items()):
        return
    hosts = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    for name in NO_PROXY_VARIABLES:
        if name in environment or name != "no_grpc_proxy":
            environment[name] = _with_loopback(environment.get(name) or hosts)


def _is_proxy_variable(name: str) -> bool:
    return name.lower().endswith("_proxy") and name.lower() not in NO_PROXY_VARIABLES


def _with_loopback(hosts: str) -> str:
    listed = [host.strip() for host in hosts.split(",") if host.strip()]
    if "*" in listed:
        return hosts
    return ",".join([*listed, *(host for host in LOOPBACK if host not in listed)])


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
