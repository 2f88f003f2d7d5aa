"""What the code of a job or a model needs of Vertex AI; standard library only, but for ``serving``.

===============  =====================================================================
``cluster``      node rank, number of nodes and the primary's address, from CLUSTER_SPEC
``launch``       ``python -m vertex_job.launch -- train.py``: torchrun on every node
``folders``      output folders, from the variables that the service sets
``checkpoints``  checkpoints that survive a kill at any moment
``snapshot``     data that was written once: its files, which are what the manifest says
``stores``       files below ``gs://…``, ``/gcs/…`` or a folder of this machine
``metrics``      metrics of a trial, for hyperparameter tuning
``stop``         SIGTERM as a flag
``serving``      predictions over HTTP; needs starlette and uvicorn
``errors``       the exceptions of this library
===============  =====================================================================
"""
