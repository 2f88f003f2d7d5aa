"""Cloud Monitoring alerts that match log lines of jobs; the notifications are written as files.

================  ====================================================================
``policies``      which declared alerts can be judged here, and why the others cannot
``spool``         notifications as JSON files; nothing is ever sent
``evaluation``    looks at jobs that ended, and writes what their lines call for
================  ====================================================================

Metrics and costs do not exist here, so alerts on metrics and budgets are listed as not judged.
"""
