"""Where images came from, as their OCI labels say: the commit and the folder."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from infra.errors import CommandError, RegistryError
from vt.engine.stacks import StackRef
from vt.images import connection, labels, registry

#: Images that are looked at for one review.
MOST: Final = 20


def origins_of(ref: StackRef, uris: Iterable[str]) -> dict[str, str]:
    """Where each image (``NAME@DIGEST``) came from, in words. Nothing is started.

    An image that could not be looked at has the reason instead.
    """
    if ref.is_local and not os.environ.get(registry.EMULATOR):
        with suppress(CommandError):
            connection.connect(ref, lambda _: None, start=False)
    return {uri: _origin(uri) for uri in list(dict.fromkeys(uris))[:MOST]}


def _origin(uri: str) -> str:
    name, _, digest = uri.partition("@")
    try:
        at, path = registry.registry_of(name)
        facts = at.facts(path, digest) if digest else None
    except RegistryError as failed:
        return f"not looked at: {failed.message}"
    if facts is None:
        return "the registry has no such image"
    return str(labels.origin(facts.labels)) or "its labels do not say"
