"""``vt images`` and ``vt promote``: build images once, pin them by digest, copy them.

=============  ====================================================================
``command``    the command lines
``building``   builds images and pins them: at most one build for a context
``pinning``    writes pins into stack files; copies images from another stack
``lookup``     looks images up in their registries, within a time, for checks and reviews
``registry``   reads and copies images, by the OCI distribution protocol
``transport``  HTTP to one registry: credentials go only there, answers are bounded
``documents``  manifests, configurations and labels: parsed as untrusted text
``engines``    builders of images: Cloud Build, or a program of this machine
=============  ====================================================================
"""
