"""``vt images`` and ``vt promote``: build images once, pin them by digest, copy them.

===============  ==========================================================================
``command``      the command lines
``building``     builds images or copies them from another stack, and pins their digests
``programs``     interface of engines; docker, podman and buildah; a program of one build
``cloud_build``  Cloud Build: starts, joins, follows and cancels a build; explains refusals
``lookup``       looks up images in registries within a time limit, for checks and reviews
``registry``     reads and copies images by the OCI distribution protocol
``documents``    manifests, configurations and labels, parsed as untrusted text
===============  ==========================================================================
"""
