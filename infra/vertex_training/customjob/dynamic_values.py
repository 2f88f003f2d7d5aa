"""What the dynamic providers of this package share: their values, and what they print."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from typing import Any, Final

from vertex_training.errors import OperatorError
from vertex_training.pulumi_internals import Unknown
from vertex_training.secret_rules.redaction import redacted

#: Key of ``options``: the account that acts for the caller, which ``delete`` needs as well.
IMPERSONATE: Final = "impersonate"
#: Key of the pickled provider in the inputs of a dynamic resource.
PROVIDER_KEY: Final = "__provider"


def format_exception(*args: Any, **kwargs: Any) -> str:
    """Of an ``OperatorError`` its message alone; of all others the traceback. Without secrets."""
    error = sys.exc_info()[1]
    is_plain = isinstance(error, OperatorError)
    return redacted(str(error) if is_plain else traceback.format_exc(*args, **kwargs))


def print_line(text: str) -> None:
    """Show a line in the engine's output, which takes stderr of a provider for messages."""
    print(f"vt: {redacted(text)}", file=sys.stderr, flush=True)


def without_provider(props: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs or outputs without the pickled provider."""
    return {key: value for key, value in props.items() if key != PROVIDER_KEY}


def has_unknown(value: Any) -> bool:
    """Whether a part of it is not known yet, in a preview."""
    if isinstance(value, dict):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(has_unknown(item) for item in value)
    return isinstance(value, Unknown)
