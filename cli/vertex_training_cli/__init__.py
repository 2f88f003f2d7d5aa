"""``vt``: the command beside ``pulumi``. It imports ``vertex_training``, which never imports it.

=================  =======================================================================
``cli``            the command line; its verbs are in ``help``
``setup``          ``vt setup``: pulumi and policies beside ``vt``
``check``          ``vt check``: every mistake in job files and stack files
``render``         ``vt render``: the request that a job file becomes
``catalogue``      ``vt catalogue``: machine types with regions and list prices
``new_job``        ``vt new job``: a sample job, written into files
``rerun``          ``vt jobs rerun``: one more run of a job, written into files
``importing``      ``vt import``: jobs of gcloud files, REST bodies, code, notebooks and runs
``init``           ``vt init``, ``vt upgrade``: repositories of stack files, from templates
``review``         ``vt review``: the report of a change, from the engine's events
``diff``           ``vt diff``: differences between two stacks
``iam``            ``vt iam``: grants that both programs declare
``declared``       what both programs declare, without an engine
``preflight``      ``vt preflight``: what a project would refuse of a deployment
``deploy``         ``vt deploy``, ``vt approval``: deploys what was approved
``up``             ``vt up`` and ``vt destroy``: what must be known before, and cleared after
``drift``          ``vt drift``: differences between the cloud and the stack
``github``         ``vt github``: comments, approvals and issues of the workflows
``jobs``           ``vt jobs``: running and ended jobs; what is due, by a timer
``run``            ``vt run``: one job, submitted once and followed to its end
``serving``        ``vt models``, ``vt endpoints``: versions and their runs, predictions
``images``         ``vt images``, ``vt promote``: builds, pins, lists and copies images
``data``           ``vt data``: folders of data, to and from a bucket
``local``          ``vt local``: the commands about the local cloud
``engine``         the one place that runs ``pulumi`` and reads its events, plans and state
``rest``           what is read of Google, and calls of its REST methods
``toolchain``      installs pulumi, its plugins and the policies' packages
``help``           which function a verb is; completion in shells
``failures``       turns exceptions into lines on stderr and exit codes
``options``        options that several verbs have
``policy_levels``  levels of policies, of the stack file and of ``--policy-levels``
``process``        streams, proxies and user of the process of a command
``console``        tables and colours for people
``status``         lines on stderr; which extra a missing package is of
``read_errors``    refused reads: an object that is missing, or a permission
=================  =======================================================================
"""
