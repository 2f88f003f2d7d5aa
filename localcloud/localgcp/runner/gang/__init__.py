"""Runs all replicas of a job together: ``hosts``, ``host_launcher`` and ``running``."""
