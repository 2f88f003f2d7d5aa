"""``vt``: a command that complements ``pulumi``. It imports ``vertex_training``, not vice versa.

=================  =======================================================================
``cli``            the command line; its verbs are in ``help``
``setup``          ``vt setup``: installs pulumi and policies beside ``vt``
``check``          ``vt check``: reports mistakes in job files and stack files
``render``         ``vt render``: prints the request of a job file
``catalogue``      ``vt catalogue``: machine types with regions and list prices
``job_files``      ``vt new job``, ``vt jobs rerun``: create and edit files of jobs
``importing``      ``vt import``: converts jobs of gcloud, REST, code and notebooks
``init``           ``vt init``, ``vt upgrade``: repositories of stack files, from templates
``review``         ``vt review``: reports a change, from the engine's events
``diff``           ``vt diff``: differences between two stacks
``iam``            ``vt iam``: grants that both programs declare
``declared``       resources that both programs declare, without an engine
``preflight``      ``vt preflight``: checks if Google Cloud would refuse a deployment
``deploy``         ``vt deploy``, ``vt approval``: deploys an approved plan
``up``             ``vt up`` and ``vt destroy``: ``pulumi`` with checks and cleanup
``drift``          ``vt drift``: differences between the cloud and the stack
``github``         ``vt github``: comments, approvals and issues of the workflows
``jobs``           ``vt jobs``: running and ended jobs; due submissions of schedules
``run``            ``vt run``: submits one job and follows it until it ends
``serving``        ``vt models``, ``vt endpoints``: versions and their runs, predictions
``images``         ``vt images``, ``vt promote``: builds, pins, lists and copies images
``data``           ``vt data``: snapshots; objects of buckets, listed and downloaded
``local``          ``vt local``: the commands about the local cloud
``engine``         runs ``pulumi`` and reads its events, plans and state
``rest``           calls of Google's REST methods
``toolchain``      installs pulumi, its plugins and the policies' packages
``help``           the function of each verb; completion in shells
``failures``       turns exceptions into lines on stderr and exit codes
``options``        options of several verbs
``policy_levels``  levels of policies, from the stack file and ``--policy-levels``
``process``        streams, proxies and user of a command's process; functions in threads
``console``        tables, colors and lines on stderr for people; the extra of a missing package
=================  =======================================================================
"""
