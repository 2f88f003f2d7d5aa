"""Hyperparameter tuning jobs: trials as CustomJobs of the local cloud.

==================  ==================================================================
``service``         the methods of ``JobService`` for tuning jobs; the parts put together
``checks``          what ``CreateHyperparameterTuningJob`` refuses
``records``         tuning jobs and trials as rows of SQLite; the best trial
``driver``          starts and stops trials, reads their measurements, ends tuning jobs
``progress``        what follows from the trials that ended
``stopping``        which trials are ended early
``parameters``      the search space; values as arguments
``exact``           GRID_SEARCH and RANDOM_SEARCH
``bayesian``        the default algorithm, stood in for by optuna
``measurements``    the file in which a trial reports its metrics
==================  ==================================================================
"""
