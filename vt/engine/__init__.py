"""Everything ``vt`` knows of the Pulumi engine and its command line.

====================  ================================================================
``paths``             the Pulumi project around the current folder
``stacks``            which stack a command is about, and how it is reached
``preview``           runs ``pulumi preview`` and collects the engine's events
``events``            events -> a plan
``values``            what may be shown of a value
``fields``            what differs between two values
``stack_state``       what the state file of the local backend holds
``pending_creates``   what a killed run had begun to create
``locks``             locks of a self-managed backend
``attributes_file``   the file beside a state file that a kill cuts off
``foreground``        runs ``pulumi`` as if it had taken our place
====================  ================================================================
"""
