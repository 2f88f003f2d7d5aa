"""Training pipelines that run one CustomJob: what ``aiplatform.CustomTrainingJob`` calls.

============  ================================================================
``records``   pipelines as rows of SQLite
``service``   create, get, list and cancel
============  ================================================================
"""
