"""``vt drift``: where the cloud is no longer what the stack declares.

==================  ===============================================================
``command``         the command line: options, exit codes
``findings``        the plan of a refresh -> what differs
``policies``        members of IAM policies that the stack does not declare
``networks``        what is in the stack's network and not declared
``job_findings``    orphaned jobs, and those submitted by hand as the stack's accounts
``neighbours``      other stacks of the checkout in the project, and what is theirs
``exceptions``      what the stack file allows, and what is not judged
``policy_clients``  reads those policies, and removes members from them
``report``          drift as Markdown and as JSON
==================  ===============================================================
"""
