"""Runs custom jobs on this machine.

==================  ==================================================================
``job``             runs jobs from PENDING to their final state, a few at a time
``allotment``       reserves GPUs for the replicas of a job
``gang``            runs all replicas of a job together; restarts and retries
``hosts``           addresses, host names and private ``/gcs`` of replicas
``host_launcher``   script that starts a program with its own hosts file and ``/gcs``
``preparation``     installs packages and inspects images before replicas start
``executors``       cached environments in place of prebuilt images; records of substitutes
``refusals``        parts of a job that this machine cannot run
``environment``     environment variables of a training container
``gcsfuse``         buckets of a job below ``/gcs``, as synchronized folders
``programs``        starts a command of this machine or a container
``replica``         runs one process of a job in a process group
==================  ==================================================================
"""
