"""What training code needs of Vertex AI, for any job; standard library only.

===============  =====================================================================
``cluster``      node rank, number of nodes and the primary's address, from CLUSTER_SPEC
``launch``       ``python -m vertex_job.launch -- train.py``: torchrun on every node
``folders``      output folders, from the variables that the service sets
``checkpoints``  checkpoints that survive a kill at any moment
``stores``       files below ``gs://…``, ``/gcs/…`` or a folder of this machine
``metrics``      metrics of a trial, for hyperparameter tuning
``stop``         SIGTERM as a flag
``errors``       the exceptions of this library
===============  =====================================================================
"""
