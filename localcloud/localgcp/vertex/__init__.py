"""Stand-in for the Vertex AI job service and for Cloud Logging of jobs.

==================  ==================================================================
``service``         services of jobs, TensorBoards and pipelines of one CustomJob
``collections``     get and list resources of one location; filters and pages of lists
``log_entries``     ``ListLogEntries`` over the log files of jobs
``job_logs``        log files of replicas, with the time of each line
``records``         jobs as rows of SQLite
``operations``      long-running operations as rows of SQLite
``checks``          errors of CreateCustomJob requests
``admission``       errors that the service detects when a job starts
``networks``        peered networks and Private Service Connect interfaces of jobs
``capacity``        reservations of jobs
==================  ==================================================================
"""
