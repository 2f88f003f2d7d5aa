"""``vt drift``: differences between the cloud and the declared stack.

==================  ===============================================================
``command``         the command line; allowed differences, resources of other stacks
``findings``        the plan of a refresh -> differences; drift as Markdown and JSON
``policies``        undeclared members of IAM policies
``undeclared``      network parts, and jobs with the stack's accounts, in no state
==================  ===============================================================
"""
