"""Stand-in for Vertex AI Experiments: metadata, and TensorBoards with what was logged to them.

================  ===================================================================
``metadata``      ``MetadataService``: stores, artifacts, contexts, executions
``tensorboards``  ``TensorboardService``: instances, experiments, runs, time series
``collections``   the methods that each collection of either service has
``records``       what there is, as rows of SQLite
================  ===================================================================
"""
