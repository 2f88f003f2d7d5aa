"""Injected faults: lost answers, errors, stale lists, stock-outs, preemptions.

================  ====================================================================
``model``         the fields of a fault, and the calls that the fault matches
``table``         the added faults in SQLite; faults of running jobs
``calls``         applies faults to calls and long-running operations
================  ====================================================================

``docs/local-stack.md`` describes the use of faults.
"""
