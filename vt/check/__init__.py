"""``vt check``: every mistake in job files that can be known before anything is sent.

=================  ================================================================
``command``        the command line: options, exit codes
``judging``        files -> reports, with a stack or without one
``stack``          what a stack file adds: references, facts, which jobs there are
``placeholders``   what references stand for when there is no stack
``report``         a file's findings, each with its extent in the source line
``text``           for people: a line for each finding, the source and a caret
``machine``        for tools: JSON, GitHub's workflow commands
``sarif``          for code scanning: SARIF 2.1.0
``listing``        what is checked: every rule
=================  ================================================================

It has to answer while somebody types: no Google library, no Pulumi, and pydantic only where a
stack is asked for.
"""
