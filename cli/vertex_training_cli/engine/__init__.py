"""Runs the Pulumi engine and reads its output. No other package does.

====================  ================================================================
``paths``             the Pulumi project around the current folder, and links out of it
``stacks``            the stack of a command, and the environment for ``pulumi``
``pulumi_cli``        finds and starts ``pulumi``, at this terminal or to read its JSON
``plan``              a plan: steps, diagnostics, policy violations; reasons of refused reads
``events``            runs ``pulumi preview`` and parses its output into a plan
``plan_file``         a plan as a file, parsed as untrusted input
``values``            redacts secrets, unknown values and files; compares values by field
``locks``             files that a killed run leaves in a self-managed backend
====================  ================================================================
"""
