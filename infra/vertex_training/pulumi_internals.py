"""Internals of the Pulumi SDK (3.272.0) that have no public interface; only this module uses them.

``tests/unit/infra/test_pulumi_internals.py`` fails if an SDK changes one of these internals.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from types import SimpleNamespace
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import pulumi
from pulumi.output import UNKNOWN, Unknown
from pulumi.resource import DependencyResource
from pulumi.runtime import get_root_resource
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.settings import _get_rpc_manager
from pulumi.runtime.sync_await import _sync_await

__all__ = ["UNKNOWN", "DependencyResource", "Unknown", "get_root_resource"]

T = TypeVar("T")

#: Main module of a dynamic provider's process: ``python -m pulumi.dynamic ADDRESS``.
PROVIDER_MODULE: Final = "pulumi.dynamic.__main__"
#: Seconds between checks for failed registrations during a wait.
FAILURE_INTERVAL: Final = 1.0
#: Seconds to wait for a connection to the engine.
CONNECT_TIMEOUT: Final = 2.0
#: Results of :func:`names_of_run`. A process may serve several runs: programs of the Automation API
#: by root resource; in a plugin the preview and the update, by the engine's address.
_OF_PROGRAMS: Final[MutableMapping[pulumi.Resource, dict[str, str]]] = WeakKeyDictionary()
_IN_PLUGIN: Final[dict[tuple[Any, bool], dict[str, str]]] = {}


def config() -> Mapping[str, str]:
    """Return the stack's whole config by full key; ``pulumi.Config`` reads only single keys."""
    return pulumi.runtime.config.CONFIG.get() or pulumi.runtime.config.get_config_env()


def awaited(value: Awaitable[T]) -> T:
    """Return the result of an awaitable in synchronous code, like the SDK's ``invoke``.

    Raises the error of a failed registration. Without this, outputs stay pending forever after the
    engine of an Automation API program has ended.
    """
    return _sync_await(_until_failure(value))


async def _until_failure(value: Awaitable[T]) -> T:
    pending = asyncio.ensure_future(value)
    while not (await asyncio.wait({pending}, timeout=FAILURE_INTERVAL))[0]:
        calls = (rpc for rpc in _get_rpc_manager().rpcs if isinstance(rpc, asyncio.Future))
        for call in calls:
            if call.done() and not call.cancelled() and (failure := call.exception()):
                pending.cancel()
                raise failure
    return pending.result()


def names_of_run() -> dict[str, str]:
    """Return the dict of names that all components of this run share."""
    if (root := get_root_resource()) is not None:
        return _OF_PROGRAMS.setdefault(root, {})
    register = getattr(pulumi.runtime.settings.get_monitor(), "RegisterResource", None)
    run = getattr(register, "_target", None), pulumi.runtime.is_dry_run()
    return _IN_PLUGIN.setdefault(run, {})


def is_mocked() -> bool:
    """Return True in a unit test that runs without an engine."""
    return isinstance(pulumi.runtime.settings.get_monitor(), MockMonitor)


def children_of(component: pulumi.ComponentResource) -> Iterable[pulumi.Resource]:
    """Return the child resources of ``component``, sorted by name."""
    return sorted(component._childResources, key=lambda child: child._name)


def is_engine_alive() -> bool:
    """Return True if the engine that started this provider process still accepts connections.

    A provider continues its call after its engine is killed. It must not send a new request, since
    the next ``pulumi up`` may already run.
    """
    main = getattr(sys.modules["__main__"], "__spec__", None)
    if main is None or main.name != PROVIDER_MODULE:
        return True  # a test or another program called the provider
    host, _, port = sys.argv[-1].rpartition(":")  # the engine's gRPC address
    if not port.isdecimal():
        return True  # another version of the SDK passes the address differently
    try:
        socket.create_connection((host or "127.0.0.1", int(port)), CONNECT_TIMEOUT).close()
    except OSError:
        return False
    return True


def format_exceptions(format_exc: Callable[..., str]) -> None:
    """Make this provider process report exceptions by ``format_exc``."""
    main = sys.modules["__main__"]  # the code of this module calls `traceback.format_exc()`
    if getattr(main, "traceback", None) is traceback:
        main.traceback = SimpleNamespace(format_exc=format_exc)  # type: ignore[attr-defined]
