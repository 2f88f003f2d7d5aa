"""``vt drift``: where the cloud is no longer what the stack declares.

==================  ===============================================================
``command``         the command line: options, exit codes
``findings``        the plan of a refresh -> what differs
``policies``        members of IAM policies that the stack does not declare; removes them
``networks``        what is in the stack's network and not declared
``job_findings``    orphaned jobs, and those submitted by hand as the stack's accounts
``exceptions``      what the stack file allows, what is of other stacks, what is not judged
``report``          drift as Markdown and as JSON
==================  ===============================================================
"""
