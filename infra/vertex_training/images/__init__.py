"""Images of a stack: what they are built from, and the identity of a build. Pure.

==============  ======================================================================
``context``     a folder with a Dockerfile, as a deterministic archive
``identity``    the digest of an archive and its build options, and the tag it gives
``pins``        what a stack pins, and whether it is behind its context
``pinned``      what all stack files of a checkout pin
``cleanup``     which images a repository keeps, and which its clean-up deletes
``dockerfile``  what keeps a Dockerfile from being built
==============  ======================================================================
"""
