"""Model versions from artifacts of runs, and endpoints that serve them.

==================  ==========================================================================
``declared``        declared versions and endpoints, with their identities; pure
``ports``           interfaces to Vertex AI and the bucket; waits for operations; pure
``uploads``         checks the artifacts of a run; uploads each version once; pure
``reconciliation``  updates an endpoint as declared, step by step; pure
``google``          implements the interfaces with Google's clients
``provider``        the three resources and their dynamic providers; states contain their names
==================  ==========================================================================
"""
