"""Repositories of stack files: made by ``vt init``, brought to a newer release by ``vt upgrade``.

=============  ========================================================================
``command``    the command line of ``vt init``
``upgrading``  the command line of ``vt upgrade``
``offering``   what both have in common: which repository, and how changes are offered
``answers``    what a repository is made from, and the rules for it
``rendering``  answers -> the files of a repository; the texts are in ``templates/``, in Jinja
``manifest``   ``.vertex-training.json``: release, answers, and what was written
``changes``    what a command would change, file by file, as a diff
``staging``    writes all of it or nothing, also after a kill
=============  ========================================================================
"""
