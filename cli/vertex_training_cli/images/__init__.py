"""``vt images`` and ``vt promote``: images are built once, pinned by digest, and copied.

==============  ====================================================================
``command``     the command lines
``building``    builds images and pins them: at most one build for a context
``promotion``   copies images and their digests to another stack
``checking``    the pinned images as their registries have them
``lookup``      looks images up in their registries, within a time
``pull_access`` whether Vertex AI may pull an image of another project
``registry``    reads and copies images, by the OCI distribution protocol
``transport``   HTTP to one registry: credentials go there alone, answers are bounded
``documents``   manifests and configurations, read as text that anybody may have written
``labels``      which commit and folder an image was built from
``stack_file``  writes pins: as a whole or not at all
``connection``  the local cloud's registry for stacks that live there
``progress``    lines for people while something is built
``engines``     what builds an image: a service, or a program of this machine
==============  ====================================================================
"""
