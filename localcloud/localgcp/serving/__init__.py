"""Stand-in for Vertex AI's model registry and online prediction.

==================  ======================================================================
``models``          ``ModelService``: versions of models, their aliases
``endpoints``       ``EndpointService``: what is deployed, and who gets which traffic
``service``         ``PredictionService``: requests to healthy containers; the three services
``deployments``     containers of DeployedModels: started, watched, drained and ended
``replicas``        one such container
``checks``          what the services refuse
``artifacts``       the service's own copy of a model's artifacts
``records``         what there is, as rows of SQLite
==================  ======================================================================
"""
