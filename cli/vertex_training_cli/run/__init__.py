"""``vt run``: one job, submitted once and followed to its end; nothing else is brought up.

================  ====================================================================
``command``       arguments, Ctrl-C and exit codes
``submission``    from a job of a stack, or a job file, to one submission of it
``script``        a Python file without a stack: a stack of its own in the local cloud
================  ====================================================================
"""
