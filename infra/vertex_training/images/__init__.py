"""Images of a stack: what they are built from, and the identity of a build. Pure.

==============  ======================================================================
``context``     a folder with a Dockerfile, as a deterministic archive
``identity``    the digest of an archive and its build options, and the tag it gives
``pins``        what stacks pin, what is behind its context, Dockerfiles that cannot be built
``cleanup``     which images a repository keeps, and which its clean-up deletes
==============  ======================================================================
"""
