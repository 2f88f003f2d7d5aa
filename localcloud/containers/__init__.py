"""Containers on this machine: a registry that holds images, in place of Artifact Registry.

================  ====================================================================
``registry``      the OCI registry (distribution), a child process of the server
``requests``      which requests pass to it: names, repositories, immutable tags
``front``         the port that clients use, in front of the registry
================  ====================================================================
"""
