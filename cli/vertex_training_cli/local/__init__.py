"""``vt local``: the commands about the local cloud (package ``localcloud``).

===================  ==================================================================
``commands``         verbs that start, stop and enter it
``fault_commands``   ``vt local fault``
``secret_values``    ``vt local secret``: the value of a secret, from a prompt or stdin
``up``               ``vt local up``
``image_form``       jobs as images, where this machine builds them
``endpoint_form``    ``vt local up --endpoints``: train, then serve, in a stack of its own
``job_limits``       what the job service refuses by the catalogue and the rules of images
``watch``            waits for the jobs of a stack
``results``          metrics and artifacts of a job
``shell``            ``vt local shell``
``status``           ``vt local status``
``joblogs``          ``vt local logs``
``shutdown``         ``vt local down``
===================  ==================================================================
"""
