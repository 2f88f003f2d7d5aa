"""Alerts of Cloud Monitoring that match lines of jobs' logs, and their notifications as files.

================  ====================================================================
``policies``      which declared alerts can be judged here, and why the others cannot
``spool``         notifications as mail in files; nothing is ever sent
``evaluation``    looks at jobs that ended, and writes what their lines call for
================  ====================================================================

Metrics and costs do not exist here, so alerts on metrics and budgets are listed as not judged.
"""
