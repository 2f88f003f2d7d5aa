"""``vt verify``: run a throw-away stack once, and report where the cloud differed from a rehearsal.

``command`` reads the line; ``refusals`` says why nothing is made; ``steps`` runs the stack and
``edits`` writes the changed job files; ``observations`` (pure) makes states, shapes and codes of
what was answered; ``comparison`` (pure) compares them with ``rehearsal.json``, the
``observations.json`` of a run on the local cloud (``make rehearsal``); ``report`` redacts and
writes.

Nothing here asks which cloud it is.
"""
