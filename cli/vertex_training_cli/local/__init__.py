"""``vt local``: the commands about the local cloud (package ``localcloud``).

===================  ==================================================================
``commands``         verbs that start, stop and enter it; values of secrets
``fault_commands``   ``vt local fault``
``up``               ``vt local up``, which waits for the jobs of a stack
``image_form``       jobs as images, where this machine builds them
``endpoint_form``    ``vt local up --endpoints``: train, then serve, in a stack of its own
``job_limits``       what the job service refuses by the catalogue and the rules of images
``results``          jobs in states and records, their metrics and artifacts
``status``           ``vt local status``
``joblogs``          ``vt local logs``
===================  ==================================================================
"""
