"""Library for code of jobs and models on Vertex AI, based only on the standard library.

``ranks`` and ``states`` need torch, ``serving`` needs starlette and uvicorn.

===============  =====================================================================
``cluster``      node rank, number of nodes and the primary's address, from CLUSTER_SPEC
``launch``       ``python -m vertex_job.launch -- train.py``: torchrun on every node
``folders``      output folders, from the variables that the service sets
``checkpoints``  checkpoints that survive a kill at any moment
``ranks``        the processes of a training: rank, device, messages
``states``       states of models and optimizers, saved while the training goes on
``snapshot``     data that was written once: its files, which are what the manifest says
``stores``       files below ``gs://…``, ``/gcs/…`` or a folder of this machine
``metrics``      metrics of a trial, for hyperparameter tuning; use of the GPU
``transport``    the network between the nodes, from NCCL's log
``stop``         SIGTERM as a flag
``serving``      predictions over HTTP
``errors``       the exceptions of this library
===============  =====================================================================
"""
