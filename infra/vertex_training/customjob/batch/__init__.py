"""Convert a checked CustomJob into a Google Batch job. Pure.

============  =================================================================================
``message``   message for Batch: fields, machines, disks, ranks of tasks
``naming``    job ids; states and exit codes as text
``offers``    cost of a job on each service, or the reason why a service cannot run it
============  =================================================================================

``rules.batch`` refuses jobs with unsupported fields before.
"""
