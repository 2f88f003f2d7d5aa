"""Hyperparameter tuning jobs, which run their trials as CustomJobs of the local cloud.

==================  ==================================================================
``service``         methods of ``JobService`` for tuning jobs; errors of new tuning jobs
``records``         tuning jobs and trials as rows of SQLite
``driver``          starts and stops trials, reads their measurements, ends tuning jobs
``searches``        search spaces, and the algorithms that choose parameter values
==================  ==================================================================
"""
