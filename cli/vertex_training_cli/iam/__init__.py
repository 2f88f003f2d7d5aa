"""``vt iam``: who can do what in an environment, from what the two programs declare.

=============  =================================================================
``recording``  runs the programs without an engine and records their grants
``tables``     the grants, custom roles and denials as text, Markdown or JSON
``command``    the command line
=============  =================================================================
"""
