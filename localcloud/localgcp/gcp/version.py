"""Which version the stand-in for the gcp plugin says it has."""

from __future__ import annotations

import importlib.metadata
from typing import Final

#: The official plugin that it was measured by.
MEASURED: Final = "9.35.0"
#: Major versions whose SDK gives it the same inputs (docs/adr/0075).
_SERVED: Final = ("9.", "10.")


def version() -> str:
    """The version of the SDK that is installed beside it, which the engine compares with this.

    A program in another language, or with an SDK that it does not serve, is told of the one that it
    was measured by.
    """
    try:
        found = importlib.metadata.version("pulumi-gcp")
    except importlib.metadata.PackageNotFoundError:
        return MEASURED
    return found if found.startswith(_SERVED) else MEASURED
