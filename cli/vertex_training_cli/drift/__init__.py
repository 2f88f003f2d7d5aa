"""``vt drift``: where the cloud is no longer what the stack declares.

==================  ===============================================================
``command``         the command line: options, exit codes
``findings``        the plan of a refresh -> what differs
``policies``        members of IAM policies that the stack does not declare; removes them
``undeclared``      parts of the stack's network, and jobs as its accounts, in no state
``exceptions``      what the stack file allows, what is of other stacks, what is not judged
``report``          drift as Markdown and as JSON
==================  ===============================================================
"""
