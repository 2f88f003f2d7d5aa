"""``vt local``: commands of the local cloud (package ``localcloud``).

===================  ==================================================================
``commands``         verbs that start, stop and use the local cloud; secret values
``fault_commands``   ``vt local fault``
``up``               ``vt local up``, which waits for jobs of a stack, and serves endpoints
``job_limits``       requests that the job service refuses, by catalogue and image rules
``results``          jobs in states and records, their metrics and artifacts
``status``           ``vt local status``
===================  ==================================================================
"""
