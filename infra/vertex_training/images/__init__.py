"""Images of a stack: build contexts, identities of builds, pins and clean-up. Pure.

===========  ========================================================================
``context``  a folder with a Dockerfile as an archive, and the identity of its build
``pins``     pinned images, outdated images, invalid Dockerfiles
``cleanup``  clean-up policies of a repository, and the images that they delete
===========  ========================================================================
"""
