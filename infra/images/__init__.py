"""Images of a stack: what they are built from, and the identity of a build. Pure.

==============  ======================================================================
``context``     a folder with a Dockerfile, as a deterministic archive
``identity``    the digest of an archive and its build options, and the tag it gives
``pins``        what a stack pins, and whether it is behind its context
``dockerfile``  what keeps a Dockerfile from being built
==============  ======================================================================
"""
