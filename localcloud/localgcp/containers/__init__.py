"""Containers on this machine: a registry in place of Artifact Registry, and container engines.

================  ====================================================================
``registry``      the OCI registry (distribution), a child process of the server
``requests``      which requests pass to it: names, repositories, immutable tags
``front``         the port that clients use, in front of the registry
``mirror``        a base image for machines that reach no public registry
``engines``       images that jobs name; buildah, podman and docker, by their command lines
``host``          which of them runs containers here; settings for programs that build images
================  ====================================================================
"""
