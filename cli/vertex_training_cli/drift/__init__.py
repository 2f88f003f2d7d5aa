"""``vt drift``: differences between the cloud and the declared stack.

==================  ===============================================================
``command``         the command line: options, exit codes
``findings``        the plan of a refresh -> differences
``policies``        undeclared members of IAM policies
``undeclared``      network parts, and jobs with the stack's accounts, that are in no state
``exceptions``      allowed differences, resources of other stacks, parts that are not judged
``report``          drift as Markdown and as JSON
==================  ===============================================================
"""
