"""Model versions made of what runs left, and the versions that endpoints serve.

============  ======================================================================
``declared``  what a stack declares of both, with the identities that follow; pure
============  ======================================================================
"""
