"""From a checked CustomJob to a job of Google Batch. Pure.

============  =================================================================================
``message``   the message that is sent: fields, machines, disks, ranks of tasks
``naming``    ids that jobs are created under; states and exit codes in words
``offers``    what a job costs on each service, or why Batch does not take it
============  =================================================================================

What Batch cannot do is refused before, by the rules of ``rules.batch``.
"""
