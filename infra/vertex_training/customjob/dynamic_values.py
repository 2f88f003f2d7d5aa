"""Shared parts of the dynamic providers: base class, unknown values, and printed lines."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pulumi import dynamic

from vertex_training.customjob.protocol.ports import Timing
from vertex_training.errors import OperatorError
from vertex_training.pulumi_internals import Unknown, format_exceptions
from vertex_training.secret_rules.redaction import redacted

#: Key of ``options``: the impersonated account, which ``delete`` needs as well.
IMPERSONATE: Final = "impersonate"
#: Key of the pickled provider in the inputs of a dynamic resource.
PROVIDER_KEY: Final = "__provider"


class BoundedProvider(dynamic.ResourceProvider):
    """Base class of the providers. The SDK pickles its instances, which have no attributes."""

    # The provider has no secrets. A secret would cost a key operation for each resource.
    serialize_as_secret_always = False

    timing: ClassVar[Timing] = Timing()
    """Time limits of the protocol. Only tests override this attribute, in a subclass."""

    def configure(self, req: dynamic.ConfigureRequest) -> None:  # noqa: ARG002 (the SDK's name)
        """Prepare the process. The SDK calls this once; a resource's settings are in its inputs."""
        format_exceptions(format_exception)


def format_exception(*args: Any, **kwargs: Any) -> str:
    """Return the message of an ``OperatorError``, else the traceback, without secrets."""
    error = sys.exc_info()[1]
    is_plain = isinstance(error, OperatorError)
    return redacted(str(error) if is_plain else traceback.format_exc(*args, **kwargs))


def print_line(text: str) -> None:
    """Print a line to stderr, which the engine shows as a message."""
    print(f"vt: {redacted(text)}", file=sys.stderr, flush=True)


def without_provider(props: Mapping[str, Any]) -> dict[str, Any]:
    """Return inputs or outputs without the pickled provider, which the SDK adds."""
    return {key: value for key, value in props.items() if key != PROVIDER_KEY}


def has_unknown(value: Any) -> bool:
    """Return whether any part of the value is unknown, as in a preview."""
    if isinstance(value, dict):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(has_unknown(item) for item in value)
    return isinstance(value, Unknown)
