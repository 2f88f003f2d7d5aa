"""All use of the Pulumi engine and its command line.

====================  ================================================================
``paths``             the Pulumi project around the current folder, and links out of it
``stacks``            which stack a command is about, and the environment it needs
``pulumi_cli``        finds and starts ``pulumi``, and reads its JSON
``foreground``        runs a command at this terminal and passes signals on
``preview``           runs ``pulumi preview``
``plan``              a plan: steps, diagnostics, policy violations
``events``            the engine's events -> a plan
``preview_document``  the document of ``pulumi preview --json`` -> a plan
``plan_file``         a plan as a file, read without trust in who wrote it
``values``            redacts values: secrets, unknown values, files
``fields``            two values -> the fields that differ
``stack_state``       what the state file of the local backend has
``pending_creates``   creations that a killed run began
``locks``             locks of a self-managed backend
``attributes_file``   the file beside a state file that a kill can truncate
====================  ================================================================
"""
