"""A machine whose clock is wrong: CHAOS_SKEW seconds are added to the time of day."""

import os
import time

_SKEW = float(os.environ["CHAOS_SKEW"])
_time, _time_ns = time.time, time.time_ns

time.time = lambda: _time() + _SKEW
time.time_ns = lambda: _time_ns() + int(_SKEW * 1e9)
