"""Model versions that are uploaded once, and endpoints that are brought to what is declared. Pure.

===================  =================================================================
``ports``            what is needed of Vertex AI and the bucket; waits for long operations
``run_artifacts``    which job a run is, and whether its folder can be a model's version
``uploads``          one request, one version: the submission of jobs over a registry
``reconciliation``   one endpoint: look, take the next single step, look again
===================  =================================================================
"""
