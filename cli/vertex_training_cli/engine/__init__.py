"""All use of the Pulumi engine and its command line.

====================  ================================================================
``paths``             the Pulumi project around the current folder, and links out of it
``stacks``            which stack a command is about, and the environment it needs
``pulumi_cli``        finds and starts ``pulumi``, at this terminal or to read its JSON
``preview``           runs ``pulumi preview``
``plan``              a plan: steps, diagnostics, policy violations
``events``            events, or the document of ``pulumi preview --json`` -> a plan
``plan_file``         a plan as a file, read without trust in who wrote it
``values``            redacts values: secrets, unknown values, files; the fields that differ
``locks``             what a killed run leaves in a self-managed backend
====================  ================================================================
"""
