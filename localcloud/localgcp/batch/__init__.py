"""Stand-in for Batch: jobs of equal tasks, executed by the code that runs CustomJobs.

================  ====================================================================
``service``       the methods of ``google.cloud.batch.v1.BatchService`` served here
``checks``        what CreateJob refuses, and who may call what
``records``       jobs and tasks as rows; one place that moves states
``scheduler``     which job begins when; what an earlier server left; 1,080 seconds
``capacity``      what a job waits for: quota, stock-outs, reservations
``run``           one job from its machines to its end
``tasks``         one task: its runnables, exit codes, retries and barriers
``runnables``     what a runnable starts: an image, a command or a script
``volumes``       buckets at the paths where a job mounts them
``logs``          the job's logs as Cloud Logging has them
``messages``      messages of Pub/Sub about states, as files
================  ====================================================================

Field names, limits and states are those of google-cloud-batch 0.22.4 and of
https://docs.cloud.google.com/batch/docs; docs/local-stack.md says what is a stand-in.
"""
