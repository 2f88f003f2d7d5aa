"""``vt images`` and ``vt promote``: build images once, pin them by digest, copy them.

=============  ====================================================================
``command``    the command lines
``building``   builds images and pins their digests
``pinning``    writes digests into stack files; copies images from another stack
``lookup``     looks up images in registries within a time limit, for checks and reviews
``registry``   reads and copies images by the OCI distribution protocol
``documents``  manifests, configurations and labels, parsed as untrusted text
``engines``    builders of images: Cloud Build, or a program of this machine
=============  ====================================================================
"""
