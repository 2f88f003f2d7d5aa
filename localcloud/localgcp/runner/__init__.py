"""Runs custom jobs on this machine.

==================  ==================================================================
``scheduler``       runs a few jobs at a time; the others wait as QUEUED
``job``             one job from PENDING to its end, its wait for machines among it
``allotment``       GPUs that the replicas get for the job's run
``gang``            all replicas of a job: hosts, restarts, retries; a package
``preparation``     what the replicas run, made ready once
``executors``       cached environments that stand in for prebuilt images
``refusals``        what this machine does not run, known before a job is submitted
``substitutes``     what a job ran on in place of what it asked for
``packages``        the job's own packages on top of such an environment
``environment``     environment variables of a training container
``buckets``         which buckets a job has below ``/gcs``, and what it wrote beside them
``gcsfuse``         ``/gcs/BUCKET`` as a folder that is synchronised with the bucket
``programs``        what a replica starts: a command of this machine, or a container
``replica``         one process of a job, as a group of its own
``joblog``          the log file of a replica, and when its lines were written
==================  ==================================================================
"""
