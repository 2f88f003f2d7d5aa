"""Repositories of stack files: ``vt init`` creates them, ``vt upgrade`` updates them.

=============  ========================================================================
``command``    the command lines
``answers``    what a repository is made from, and the rules for it
``rendering``  answers -> the files of a repository; the texts are in ``templates/``, in Jinja
``manifest``   ``.vertex-training.json``: release, answers, and what was written
``branches``   a change of the files as a branch, which git merges with the edits of a repository
=============  ========================================================================
"""
