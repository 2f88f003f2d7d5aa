"""``vt import``: converts jobs from other files into jobs of a stack; shows a diff first.

===================  =================================================================
``command``          the command line
``sources``          a file, notebook, page or existing job -> imported jobs
``recorded``         jobs that a running command of the user submits
``literals``         literals of Python code, read from its syntax and never run
``client_calls``     calls of the official client -> imported jobs
``command_lines``    gcloud commands in scripts, Makefiles and pages -> imported jobs
``imported``         an imported job, and properties without a place in a job file
``references``       buckets, accounts and secrets of a job -> the stack's own
``proposal``         the files that change, as a diff, checked before they are written
===================  =================================================================
"""
