"""``vt check``: every mistake in job files that can be known before anything is sent.

=====================  ============================================================
``command``            the command line: options, exit codes
``checking``            files -> reports, with a stack or without one
``fixing``              what is certain is mended in the files
``watching``            checks again whenever a file changes
``placeholders``       values of references where there is no stack
``rehearsal``          what the local cloud of this machine does not run, for local stacks
``report``             the findings in a file, each with its extent in the source
``text_report``        for people: a line for each finding, the source and a caret
``machine_reports``    for programs: JSON, SARIF 2.1.0, annotations of GitHub Actions
``listing``            the list of all rules
=====================  ============================================================

It has to be fast enough to run while a person types: no Google library, no Pulumi, and pydantic
only where a stack is given.
"""
