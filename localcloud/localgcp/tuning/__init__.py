"""Hyperparameter tuning jobs, which run their trials as CustomJobs of the local cloud.

==================  ==================================================================
``service``         the methods of ``JobService`` for tuning jobs; the parts put together
``checks``          what ``CreateHyperparameterTuningJob`` refuses
``records``         tuning jobs and trials as rows of SQLite; the best trial
``driver``          starts and stops trials, reads their measurements, ends tuning jobs
``progress``        which trials are started, and when a tuning job ends
``parameters``      the search space; values as arguments
``searches``        GRID_SEARCH, RANDOM_SEARCH, and optuna in place of the default algorithm
``measurements``    the file in which a trial reports its metrics
==================  ==================================================================
"""
