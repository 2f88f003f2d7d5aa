"""``vt drift``: where the cloud is no longer what the stack declares.

==================  ===============================================================
``command``         the command line: options, exit codes
``findings``        the plan of a refresh -> what differs
``policies``        members of IAM policies that the stack does not declare
``policy_clients``  reads those policies, and removes members from them
``report``          drift as Markdown and as JSON
==================  ===============================================================
"""
