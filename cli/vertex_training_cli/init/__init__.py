"""Repositories of stack files: ``vt init`` creates repositories, ``vt upgrade`` updates them.

=============  ========================================================================
``command``    the command lines
``answers``    parameters of a repository, their rules, and files rendered from ``templates/``
``manifest``   ``.vertex-training.json``, and changes of the generated files as git branches
=============  ========================================================================
"""
