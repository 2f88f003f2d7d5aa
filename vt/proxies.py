"""Proxies of the network around this machine are not for what runs on it.

The engine, its plugins and the local cloud talk to each other by 127.0.0.1. Go leaves a proxy out
there by itself; gRPC's C core, which Python uses, and ``requests`` do not: behind a proxy, not even
``pulumi preview`` would reach its own engine.
"""

from __future__ import annotations

from collections.abc import MutableMapping

LOOPBACK = ("127.0.0.1", "localhost")
#: Hosts without a proxy. gRPC reads the first, where it is set, and the second otherwise:
#: github.com/grpc/grpc, doc/environment_variables.md. Others read the last two.
EXCEPTIONS = ("no_grpc_proxy", "no_proxy", "NO_PROXY")


def spare_loopback(environment: MutableMapping[str, str]) -> None:
    """Let programs with this environment reach this machine itself without a proxy.

    Nothing changes where no proxy is set.
    """
    if not any(_names_a_proxy(name) and value for name, value in environment.items()):
        return
    given = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    for name in EXCEPTIONS:
        if name in environment or name != "no_grpc_proxy":
            environment[name] = _with_loopback(environment.get(name) or given)


def _names_a_proxy(name: str) -> bool:
    return name.lower().endswith("_proxy") and name.lower() not in EXCEPTIONS


def _with_loopback(hosts: str) -> str:
    listed = [host.strip() for host in hosts.split(",") if host.strip()]
    if "*" in listed:
        return hosts
    return ",".join([*listed, *(host for host in LOOPBACK if host not in listed)])
