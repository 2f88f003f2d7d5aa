"""``vt import``: what runs elsewhere becomes a job of a stack, shown as a diff first.

===================  =================================================================
``command``          the command line
``sources``          a file, a notebook, a page or a job that ran -> imported jobs
``recorded``         the jobs that a command of the user sends while it runs
``literals``         literals of Python code, read from its syntax and never run
``client_calls``     calls of the official client -> imported jobs
``command_lines``    lines of gcloud in scripts, Makefiles and pages -> imported jobs
``batch_messages``   jobs of Google Batch as REST and gcloud have them -> messages
``batch_jobs``       a message of Batch -> an imported job with ``backend: batch``
``imported``         an imported job, and what of it has no place in a stack
``references``       buckets, accounts and secrets of a job -> the stack's own
``proposal``         the files that change, as a diff, checked before they are written
===================  =================================================================
"""
