"""Hyperparameter tuning jobs: trials as CustomJobs of the local cloud.

==================  ==================================================================
``assembly``        all of it, put together
``service``         the methods of ``JobService`` for tuning jobs
``checks``          what ``CreateHyperparameterTuningJob`` refuses
``records``         tuning jobs and trials as rows of SQLite
``driver``          starts and stops trials, reads their measurements, ends tuning jobs
``progress``        what follows from the trials that ended
``results``         which trial is the best
``stopping``        which trials are ended early
``parameters``      the search space; values as arguments
``exact``           GRID_SEARCH and RANDOM_SEARCH
``bayesian``        the default algorithm, stood in for by optuna
``measurements``    the file in which a trial reports its metrics
==================  ==================================================================
"""
