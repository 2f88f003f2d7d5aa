"""Stand-in for Vertex AI's model registry and online prediction.

==================  ======================================================================
``models``          ``ModelService``: versions of models, with copies of their artifacts
``endpoints``       ``EndpointService``: deployed models and traffic splits
``service``         ``PredictionService``, and the assembly of the three services
``deployments``     starts, checks, drains and ends the containers of deployed models
``checks``          errors of requests
``records``         models, endpoints and deployed models as rows of SQLite
==================  ======================================================================
"""
