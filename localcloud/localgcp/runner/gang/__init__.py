"""Runs all replicas of a job together: assigns addresses, and decides what a replica's end causes.

==================  ==================================================================
``cluster``         the replicas of a job, their hosts, and what this machine refuses
``hosts``           a loopback address, a host name and a ``/gcs`` for each replica
``host_launcher``   starts a program on such a host, with a ``/gcs``; a script of its own
``life_cycle``      restarts and retries, as the service documents them; pure
``running``         replicas that run together: one attempt of a job
==================  ==================================================================
"""
