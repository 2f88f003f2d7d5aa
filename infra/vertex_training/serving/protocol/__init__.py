"""Uploads each model version once, and updates endpoints as declared. Pure.

===================  =================================================================
``ports``            interfaces to Vertex AI and the bucket; waits for long operations
``uploads``          checks the artifacts of a run; uploads each version once
``reconciliation``   updates an endpoint step by step
===================  =================================================================
"""
