"""A declarative CustomJob: from a file under ``jobs/`` to one submission on Vertex AI.

A HyperparameterTuningJob is the same with other names, and a job on Batch another message of the
same request: ``kinds`` has them.

===================  =================================================================
``kinds``            CustomJob, HyperparameterTuningJob and jobs on Batch, as each is spelt
``request``          job file -> the API's message, with all mistakes at once
``batch``            a checked CustomJob -> the message of Google Batch
``rules``            what the service would refuse, or the owner of the job regret
``protocol``         one request, one job: submission, withdrawal, waiting
``google``           Vertex AI, the control bucket and the logs, by official clients
``provider``         check, diff, create, read, update, delete (the state names it)
``dynamic_values``   what the dynamic providers share: their values, and what they print
``resource``         ``CustomJob``, which the program declares
``refusal_lookup``   in a preview: what a submission would be refused for
===================  =================================================================

``request``, ``batch``, ``rules`` and ``protocol`` are pure: they import neither Google's libraries
nor Pulumi, so checking a job file takes milliseconds.
"""
