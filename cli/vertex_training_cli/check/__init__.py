"""``vt check``: find mistakes in job files before a submission.

=============  =====================================================================
``command``    the command line: options, exit codes; applies certain fixes to the files
``checking``   checks files, with a stack or without one
``report``     findings as text, JSON and annotations of GitHub Actions; all rules
=============  =====================================================================

For a fast start, no module imports Google's libraries or Pulumi; pydantic is imported only for a
stack.
"""
