"""``vt images`` and ``vt promote``: images are built once, pinned by digest, and copied.

=============  ====================================================================
``command``    the command lines
``building``   builds images and pins them: at most one build for a context
``pinning``    writes pins into stack files; copies images from another stack
``lookup``     looks images up in their registries, within a time, for checks and reviews
``registry``   reads and copies images, by the OCI distribution protocol
``transport``  HTTP to one registry: credentials go there alone, answers are bounded
``documents``  manifests, configurations and labels: text that anybody may have written
``engines``    what builds an image: a service, or a program of this machine
=============  ====================================================================
"""
