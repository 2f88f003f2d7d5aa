"""Prepares the process of every command, and runs functions in threads within a time limit."""

from __future__ import annotations

import io
import os
import pwd
import sys
import threading
import time
from collections.abc import Callable, Iterable, MutableMapping
from typing import Final

LOOPBACK: Final = ("127.0.0.1", "localhost")
#: Variables with the hosts that need no proxy (github.com/grpc/grpc, doc/environment_variables.md).
#: gRPC reads only the first variable that is set. Other programs read the last two variables.
NO_PROXY_VARIABLES: Final = ("no_grpc_proxy", "no_proxy", "NO_PROXY")


def prepare() -> None:
    """Set up the streams and variables of this process."""
    configure_streams("replace")  # for characters of a log that this terminal cannot show
    exempt_loopback(os.environ)
    set_user_variables(os.environ)


def print_utf8() -> None:
    """Print UTF-8 in any terminal, for output that programs read."""
    configure_streams("backslashreplace", "utf-8")


def configure_streams(errors: str, encoding: str | None = None) -> None:
    """Set the error handler of stdout and stderr, and their encoding if it is not None."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=encoding, errors=errors)


def exempt_loopback(environment: MutableMapping[str, str]) -> None:
    """Exclude this machine's addresses from the proxies that an environment sets.

    The engine, its plugins and the local cloud connect to each other on 127.0.0.1. Behind a proxy,
    ``requests`` and Python's gRPC would send these connections to the proxy.
    """
    proxies = {
        name for name in environment if name.lower().endswith("_proxy") and environment[name]
    }
    if not {name for name in proxies if name.lower() not in NO_PROXY_VARIABLES}:
        return
    hosts = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    for name in NO_PROXY_VARIABLES:
        if name in environment or name != "no_grpc_proxy":
            environment[name] = _with_loopback(environment.get(name) or hosts)


def _with_loopback(hosts: str) -> str:
    listed = [host.strip() for host in hosts.split(",") if host.strip()]
    if "*" in listed:
        return hosts
    return ",".join([*listed, *(host for host in LOOPBACK if host not in listed)])


def set_user_variables(environment: MutableMapping[str, str]) -> None:
    """Set USER and HOME for a user without a system entry, because the engine requires both."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        for name, value in (("USER", str(os.getuid())), ("HOME", "/")):
            if not environment.get(name):
                environment[name] = value


def run_within(seconds: float, functions: Iterable[Callable[[], object]]) -> bool:
    """Run functions in threads; return False if some have not ended after ``seconds``."""
    threads = [threading.Thread(target=function, daemon=True) for function in functions]
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)
