"""``vt local``: the commands about the local cloud (package ``localcloud``).

==================  ==================================================================
``commands``        arguments, messages and exit codes
``fault_commands``  ``vt local fault``
``up``              ``vt local up``
``watch``           waits for the jobs of a stack
``results``         metrics and artifacts of a job
``shell``           ``vt local shell``
``status``          ``vt local status``
``joblogs``         ``vt local logs``
``shutdown``        ``vt local down``
==================  ==================================================================
"""
