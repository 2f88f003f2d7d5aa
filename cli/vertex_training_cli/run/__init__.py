"""``vt run``: submits one job and follows it until it ends. Deploys no other resource.

================  ====================================================================
``command``       arguments, signals and exit codes
``submission``    submits a job of a stack, or a job file, once
``script``        a Python file without a stack, and the files of its folder as an archive
================  ====================================================================
"""
