"""Internals of the Pulumi SDK (3.272.0) that the program uses, where it has no public way.

Nothing else of ours names them. ``tests/unit/infra/test_pulumi_internals.py`` fails when an SDK
changes one.
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

#: The module that runs as a dynamic provider's process: ``python -m pulumi.dynamic ADDRESS``.
PROVIDER_MODULE: Final = "pulumi.dynamic.__main__"
#: Seconds after which a program looks whether what it waits for can still come.
FAILURE_INTERVAL: Final = 1.0
#: Seconds to wait for a connection to the engine.
CONNECT_TIMEOUT: Final = 2.0
#: What :func:`names_of_run` gives: by the root of a program, and in a plugin by the engine's
#: address for one run, with whether that is a preview.
_OF_PROGRAMS: Final[MutableMapping[pulumi.Resource, dict[str, str]]] = WeakKeyDictionary()
_IN_PLUGIN: Final[dict[tuple[Any, bool], dict[str, str]]] = {}


def config() -> Mapping[str, str]:
    """All of the stack's config by full key. ``pulumi.Config`` only gives a key that one names."""
    return pulumi.runtime.config.CONFIG.get() or pulumi.runtime.config.get_config_env()


def awaited(value: Awaitable[T]) -> T:
    """Return the result of an awaitable to code that cannot await, as the SDK's ``invoke`` does.

    Raises what ended the registration of a resource. The SDK leaves its outputs pending for ever
    where the engine has gone: it first logs the failure, to that engine. A program of its own the
    engine kills; one of the Automation API it cannot.
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
    """A dict for names that components of one run share; empty when the run begins.

    A process may serve several runs: of the Automation API one after another or at the same time,
    and a plugin the preview of an `up` and the `up` itself.
    """
    if (root := get_root_resource()) is not None:
        return _OF_PROGRAMS.setdefault(root, {})
    register = getattr(pulumi.runtime.settings.get_monitor(), "RegisterResource", None)
    run = getattr(register, "_target", None), pulumi.runtime.is_dry_run()
    return _IN_PLUGIN.setdefault(run, {})


def is_mocked() -> bool:
    """Return whether the program runs in a unit test, without an engine."""
    return isinstance(pulumi.runtime.settings.get_monitor(), MockMonitor)


def children_of(component: pulumi.ComponentResource) -> Iterable[pulumi.Resource]:
    """The resources that have ``component`` as their parent, by name."""
    return sorted(component._childResources, key=lambda child: child._name)


def is_engine_alive() -> bool:
    """Return whether the engine that started this provider process still accepts connections.

    A provider outlives a killed engine and continues with its call. It must not begin to send a
    request then: the next ``pulumi up`` may already run. The engine gives a provider its own gRPC
    address as the last argument. True in a process that no engine started.
    """
    main = getattr(sys.modules["__main__"], "__spec__", None)
    if main is None or main.name != PROVIDER_MODULE:
        return True  # a test, or a program that calls the provider itself
    host, _, port = sys.argv[-1].rpartition(":")
    if not port.isdecimal():
        return True  # another SDK version, which passes the address in another way
    try:
        socket.create_connection((host or "127.0.0.1", int(port)), CONNECT_TIMEOUT).close()
    except OSError:
        return False
    return True


def format_exceptions(format_exc: Callable[..., str]) -> None:
    """Let the provider process, this one, answer an exception with what ``format_exc`` returns.

    It answers each with ``traceback.format_exc()``, so this replaces the name ``traceback`` there.
    """
    main = sys.modules["__main__"]
    if getattr(main, "traceback", None) is traceback:
        main.traceback = SimpleNamespace(format_exc=format_exc)  # type: ignore[attr-defined]
