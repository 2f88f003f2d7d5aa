"""Images of a stack: build contexts, identities of builds, pins and clean-up. Pure.

==============  ======================================================================
``context``     a folder with a Dockerfile, as a deterministic archive
``identity``    digest of an archive and its build options; the tag of the image
``pins``        pinned images, outdated images, invalid Dockerfiles
``cleanup``     clean-up policies of a repository, and the images that they delete
==============  ======================================================================
"""
