"""Faults on purpose: lost answers, refusals, stale lists, stock-outs, preemptions.

================  ====================================================================
``model``         what a fault is, and which calls it fits
``table``         the faults that a person added, in SQLite
``control``       adds and removes faults of a local cloud, running or not
``calls``         applies faults to calls of the job service
``lists``         applies faults to lists of jobs
``jobs``          faults of running jobs: stock-outs and preemptions
``proxy``         passes requests to the storage emulator, but for what is refused or goes wrong
``front``         the proxy and the emulator behind it
``connection``    resets TCP connections
================  ====================================================================

Without a fault, nothing here acts. ``docs/local-stack.md`` is the guide.
"""
