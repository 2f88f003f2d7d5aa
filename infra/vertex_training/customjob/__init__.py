"""A declarative CustomJob: from a file under ``jobs/`` to one submission on Vertex AI.

``kinds`` describes the differences of HyperparameterTuningJobs and of jobs on Batch.

===================  =================================================================
``kinds``            names of CustomJob, HyperparameterTuningJob and Batch jobs in the APIs
``request``          job file -> API message, and all mistakes
``batch``            checked CustomJob -> message of Google Batch; ids, states and exit codes
``rules``            rules for requests
``protocol``         one request, one job: submission, withdrawal, waiting
``google``           adapters for Vertex AI, the control bucket and logs, with official clients
``provider``         check, diff, create, read, update, delete (states contain this name)
``dynamic_values``   shared parts of the dynamic providers: values and printed lines
``resource``         ``CustomJob``, which the program declares
``refusal_lookup``   predicts in a preview whether a submission would be refused
===================  =================================================================

``request``, ``batch``, ``rules`` and ``protocol`` are pure: they import neither Google's libraries
nor Pulumi, so checking a job file takes milliseconds.
"""
