"""Stand-in for Batch, which runs jobs of equal tasks with the code that runs CustomJobs.

================  ====================================================================
``service``       methods of ``google.cloud.batch.v1.BatchService``, and logs of jobs
``checks``        errors of CreateJob requests, and permissions of callers
``records``       jobs and tasks as rows of SQLite, and messages about their states
``scheduler``     starts waiting jobs when machines are available
``run``           runs the tasks of one job, with retries
``runnables``     processes and bucket mounts of one task
================  ====================================================================

Fields, limits and states are those of google-cloud-batch 0.22.4 and
https://docs.cloud.google.com/batch/docs. docs/local-stack.md lists the differences.
"""
