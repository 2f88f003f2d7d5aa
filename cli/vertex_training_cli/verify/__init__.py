"""``vt verify``: run a throw-away stack once, and write what was observed.

``command`` reads the line; ``refusals`` lists reasons to make nothing, and writes edited job files;
``steps`` runs the stack; ``observations`` (pure) makes lines of answers and compares
them with ``rehearsal.txt``, those of a run on the local cloud (``make rehearsal``).

No module here distinguishes the clouds.
"""
