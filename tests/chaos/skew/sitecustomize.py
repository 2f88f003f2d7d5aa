"""Shifts the clock of a machine by CHAOS_SKEW seconds.

But for gRPC, which hands deadlines to native code that looks at the true clock.
"""

import os
import sys
import time

_SKEW = float(os.environ["CHAOS_SKEW"])
_time, _time_ns = time.time, time.time_ns


def _for_grpc() -> bool:
    try:
        caller = sys._getframe(2).f_globals.get("__name__", "")
    except ValueError:  # called by native code that no Python code called
        return True
    return caller.partition(".")[0] == "grpc"


def _wrong() -> float:
    return _time() if _for_grpc() else _time() + _SKEW


def _wrong_ns() -> int:
    return _time_ns() if _for_grpc() else _time_ns() + int(_SKEW * 1e9)


time.time, time.time_ns = _wrong, _wrong_ns
