"""A team's own resources in a repository of stack files: ``extra.py`` beside ``__main__.py``.

=============  ============================================================================
``loading``    finds it, imports it, and checks it before anything is declared
``declaring``  calls its ``declare(environment)``, and says what ``vt deploy`` would refuse
``faults``     an exception in a team's code as one problem with file and line
=============  ============================================================================
"""
