"""``vt images`` and ``vt promote``: images are built once, pinned by digest, and copied.

============  ====================================================================
``registry``  reads and copies images, by the OCI distribution protocol
============  ====================================================================

``engines`` has what builds an image: a service, or a program of this machine.
"""
