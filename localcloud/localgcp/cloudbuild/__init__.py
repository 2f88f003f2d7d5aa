"""Stand-in for Cloud Build: gRPC, uploaded sources, and this machine's build engine.

===========  ==========================================================================
``records``  builds and their logs, as files and as entries of Cloud Logging
``service``  create, get, list by tag and cancel
``runner``   runs builds of one image by ``docker buildx``, by the rights of their account
===========  ==========================================================================

Any other build ends with FAILURE, any other call is not implemented. There is no queue and no
cache, and no time is billed.
"""
