"""Stand-in for the Vertex AI job service and for Cloud Logging of jobs.

==================  ==================================================================
``service``         ``JobService`` and ``TensorboardService``, on the API's own types
``pipelines``       training pipelines of one job
``collections``     resources of one location: create, get, list, update, delete
``log_entries``     ``ListLogEntries`` over the log files of jobs
``log_times``         when their lines were written
``filters``         the filter of ``ListCustomJobs``
``records``         jobs as rows of SQLite
``operations``      long-running operations as rows of SQLite
``checks``          what ``CreateCustomJob`` refuses, also about networks and reservations
``admission``       what a job needs when it starts: account, buckets, and the next two
``networks``        a job on a peered network, or with a Private Service Connect interface
``capacity``        a job on reservations
``job_networks``    which jobs hold a network or a network attachment
``agents``          Google's service agents and their roles
==================  ==================================================================
"""
