"""Containers on this machine: a registry in place of Artifact Registry, and container engines.

================  ====================================================================
``registry``      the OCI registry (distribution) as a child process; a base image for it
``front``         the HTTP port of the registry, which checks each request
``engines``       command lines of buildah, podman and docker
``host``          chooses the engine, and writes settings of image builders
================  ====================================================================
"""
