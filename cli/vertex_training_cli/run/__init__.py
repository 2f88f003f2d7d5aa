"""``vt run``: submits one job and follows it until it ends. Deploys no other resource.

================  ====================================================================
``command``       arguments, signals and exit codes
``submission``    from a job of a stack, or a job file, to one submission of it
``script``        a Python file without a stack: a stack of its own in the local cloud
``code``          the files of a script's folder, as an archive for the job
================  ====================================================================
"""
