"""Repositories of stack files: ``vt init`` creates repositories, ``vt upgrade`` updates them.

=============  ========================================================================
``command``    the command lines
``answers``    parameters of a repository, and their rules
``rendering``  renders the files of a repository from ``templates/`` with Jinja
``manifest``   ``.vertex-training.json``, and changes of the generated files as git branches
=============  ========================================================================
"""
