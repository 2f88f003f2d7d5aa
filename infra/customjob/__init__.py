"""A declarative CustomJob: from a file under ``jobs/`` to one submission on Vertex AI.

``request``   from a job file to the request, all mistakes at once
``rules``     what the service would refuse, or the job's owner regret
``protocol``  how one request becomes one job, whatever dies in between
``google``    Google's services as the protocol needs them
``provider``  check, diff, create, read, update, delete; the state names its path
``resource``  ``CustomJob``, which the program declares
============  ====================================================================

``request``, ``rules`` and ``protocol`` are pure: they load neither Google's libraries nor
Pulumi, so a job file is judged in milliseconds.
=======
===================  =================================================================
``request``          job file -> CustomJob message, with all mistakes at once
``rules``            what the service would refuse, or the owner of the job regret
``protocol``         one request, one job: submission, withdrawal, waiting
``google``           Vertex AI, the control bucket and the logs, by official clients
``provider``         check, diff, create, read, update, delete (the state names it)
``resource``         ``CustomJob``, which the program declares
``engine_liveness``  whether the engine of a provider process is alive
``plain_errors``     errors for people without a traceback, in the SDK's process
===================  =================================================================

``request``, ``rules`` and ``protocol`` are pure: they import neither Google's libraries nor Pulumi,
so checking a job file takes milliseconds.
"""
