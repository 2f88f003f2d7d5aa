"""Stand-in for the Vertex AI job service and for the logs of jobs.

==================  ==================================================================
``service``         the methods of ``JobService``, on the API's own types
``pipelines``         training pipelines of one job
``log_entries``     ``ListLogEntries`` over the log files of jobs
``log_times``         when their lines were written
``filters``         the filter of ``ListCustomJobs``
``records``         jobs as rows of SQLite
``operations``      long-running operations as rows of SQLite
``checks``          what ``CreateCustomJob`` refuses
``placement``       what it refuses about networks and reservations
``admission``       what a job needs when it starts: account, buckets, and the next three
``peering``         a job on a peered network
``interface``       a job with a Private Service Connect interface
``capacity``        a job on reservations
``job_networks``    which jobs hold a network or a network attachment
``agents``          Google's service agents and their roles
==================  ==================================================================
"""
