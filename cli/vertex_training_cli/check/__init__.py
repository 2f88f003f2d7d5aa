"""``vt check``: find mistakes in job files before a submission.

===================  =====================================================================
``command``          the command line: options, exit codes
``checking``         files -> reports, with a stack or without one
``fixing``           applies certain fixes to the files
``placeholders``     values of references where there is no stack
``report``           the findings in a file with their extent in the source, as text
``machine_reports``  for programs: JSON, annotations of GitHub Actions; all rules
===================  =====================================================================

It has to be fast enough to run while a person types: no Google library, no Pulumi, and pydantic
only where a stack is given.
"""
