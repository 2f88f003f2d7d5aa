"""Finds foreign code in a stack's state: pickled providers and plugins. Pure functions.

The state of a dynamic resource holds its provider, pickled. The engine unpickles it to read or
delete the resource, and a pickle can run anything. A deployment therefore accepts one form only:
the class of one of the program's own providers, without arguments and attributes.
"""

from __future__ import annotations

import base64
import binascii
import pickletools
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from vertex_training.errors import Problem

#: Key of the pickled provider in the state: ``pulumi.dynamic.dynamic.PROVIDER_KEY``. Not imported,
#: because the import loads the SDK.
_PROVIDER_KEY: Final = "__provider"
#: Module and class of each of the program's own dynamic providers.
_OWN_PROVIDERS: Final = (
    ("vertex_training.customjob.provider", "CustomJobProvider"),
    ("vertex_training.serving.provider", "ModelVersionProvider"),
    ("vertex_training.serving.provider", "EndpointCleanupProvider"),
    ("vertex_training.serving.provider", "DeployedModelsProvider"),
    ("vertex_training.snapshots.provider", "SnapshotProvider"),
    ("vertex_training.schedules.provider", "JobScheduleProvider"),
)
#: Pickle opcodes that the SDK writes for each own provider: its class, called without arguments.
#: Opcodes that depend on the pickle protocol are not included.
_OWN_PICKLES: Final = tuple(
    (
        ("SHORT_BINUNICODE", module),
        ("SHORT_BINUNICODE", name),
        ("STACK_GLOBAL", None),
        ("EMPTY_TUPLE", None),
        ("NEWOBJ", None),
        ("STOP", None),
    )
    for module, name in _OWN_PROVIDERS
)
_WITHOUT_EFFECT: Final = ("PROTO", "FRAME", "MEMOIZE")
#: Maximum length of a pickled provider's text. An own provider has about 110 characters.
_LONGEST: Final = 500
_DYNAMIC: Final = "pulumi-python:dynamic"
_PROVIDER: Final = "pulumi:providers:"
#: Plugins that the program uses. The engine starts every plugin that the state lists.
_PLUGINS: Final = ("gcp", "pulumi-python")
#: Inputs of a provider that name another program to download and run.
_DOWNLOADS: Final = ("pluginDownloadURL", "parameterization")
_HINT: Final = (
    "find out who wrote the state (`gcloud storage ls -a`), and restore an older generation"
)


def state_problems(deployment: Mapping[str, Any]) -> list[Problem]:
    """Return code in the state that the engine would run and that is not this project's."""
    pending = (e.get("resource") or {} for e in deployment.get("pending_operations") or ())
    resources = (*(deployment.get("resources") or ()), *pending)
    return [problem for resource in resources for problem in _problems(resource)]


def _problems(resource: Mapping[str, Any]) -> Iterator[Problem]:
    urn, type_ = str(resource.get("urn", "")), str(resource.get("type"))
    path = ("state", urn.rpartition("::")[2])
    states = [resource.get("inputs") or {}, resource.get("outputs") or {}]
    if type_.startswith(_PROVIDER):
        yield from _plugin_problems(type_.removeprefix(_PROVIDER), states, path)
    texts = [state[_PROVIDER_KEY] for state in states if _PROVIDER_KEY in state]
    if not texts and type_.startswith(_DYNAMIC) and not resource.get("external"):
        texts = [None]
    if any(not is_own_provider(text) for text in texts):
        yield Problem(
            "the state contains the code of a provider that the program does not have",
            "",
            _HINT,
            path,
        )


def _plugin_problems(
    name: str, states: Iterable[Mapping[str, Any]], path: tuple[str, str]
) -> Iterator[Problem]:
    if name not in _PLUGINS:
        yield Problem("the state names a plugin that the program does not use", name, _HINT, path)
    for key in _DOWNLOADS:
        if any(_has_key(state, key) for state in states):
            yield Problem(f"the state's {key} names a program to download", "", _HINT, path)


def _has_key(value: object, key: str) -> bool:
    """Return True if a mapping in ``value``, at any depth, has a non-empty value for ``key``."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Mapping):
            if item.get(key):
                return True
            pending += item.values()
        elif isinstance(item, list):
            pending += item
    return False


def is_own_provider(text: object) -> bool:
    """Return True if ``text`` pickles one of the program's own providers. Unpickles nothing."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        return False
    try:
        pickled = base64.b64decode(text, validate=True)
        steps = tuple(
            (operation.name, argument)
            for operation, argument, _ in pickletools.genops(pickled)
            if operation.name not in _WITHOUT_EFFECT
        )
    except (binascii.Error, ValueError, IndexError, OverflowError, struct.error):
        return False
    return steps in _OWN_PICKLES
