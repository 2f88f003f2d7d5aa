"""Faults on purpose: lost answers, refusals, stale lists, stock-outs, preemptions.

================  ====================================================================
``model``         what a fault is, and which calls it fits
``table``         the faults that a person added, in SQLite
``control``       adds and removes faults of a local cloud, running or not
``calls``         applies faults to calls of the job service
``lists``         applies faults to lists of jobs
``jobs``          faults of running jobs: stock-outs and preemptions
``proxy``         applies faults to Cloud Storage, as an HTTP proxy
``front``         puts the proxy in front of the storage emulator
``connection``    resets TCP connections
================  ====================================================================

Without a fault, nothing here acts. ``docs/faults.md`` is the guide.
"""
