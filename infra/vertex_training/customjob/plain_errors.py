"""Errors for people, printed by the SDK's provider process without a traceback.

The SDK (3.272.0) has no option for it: ``pulumi.dynamic.__main__`` answers every exception with
``traceback.format_exc()``. This module replaces the name ``traceback`` in that module.

``tests/unit/infra/customjob/test_plain_errors.py`` fails when the SDK changes this.
"""

from __future__ import annotations

import sys
import traceback
from types import SimpleNamespace
from typing import Any

from vertex_training.customjob.secret_patterns import redacted
from vertex_training.errors import OperatorError


def print_operator_errors_plainly() -> None:
    """Print an ``OperatorError`` as its message alone. All other exceptions keep the traceback.

    Secrets are redacted in both.
    """

    def format_exc(*args: Any, **kwargs: Any) -> str:
        error = sys.exc_info()[1]
        if isinstance(error, OperatorError):
            return redacted(str(error))
        return redacted(traceback.format_exc(*args, **kwargs))

    main = sys.modules["__main__"]
    if getattr(main, "traceback", None) is traceback:
        main.traceback = SimpleNamespace(format_exc=format_exc)  # type: ignore[attr-defined]
