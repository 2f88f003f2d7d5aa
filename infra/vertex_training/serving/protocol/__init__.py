"""Uploads each model version once, and updates endpoints as declared. Pure.

===================  =================================================================
``ports``            interfaces to Vertex AI and the bucket; waits for long operations
``run_artifacts``    finds the job of a run, and checks its artifacts
``uploads``          uploads each version once, with the submission protocol of jobs
``reconciliation``   updates an endpoint step by step
===================  =================================================================
"""
