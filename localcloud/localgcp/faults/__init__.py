"""Injected faults: lost answers, refusals, stale lists, stock-outs, preemptions.

================  ====================================================================
``model``         what a fault is, and which calls it fits
``table``         the faults that a person added, in SQLite; adds and removes them
``calls``         applies faults to calls of the job service, lists among them
``jobs``          faults of running jobs: stock-outs and preemptions
================  ====================================================================

Without a fault, nothing here acts. ``docs/local-stack.md`` is the guide.
"""
