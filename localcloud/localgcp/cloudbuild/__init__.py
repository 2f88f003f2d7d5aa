"""A stand-in of Cloud Build: real gRPC, real sources, and the engine that this machine has.

============  =========================================================================
``records``   builds and their logs, as files and as entries of Cloud Logging
``checks``    what the service refuses at once, and the rights of the build account
``steps``     the two steps of an image's build -> what the engine is asked to build
``service``   create, get, list and cancel; the parts put together for a server
``runner``    runs builds: their states, time-outs, cancellation
============  =========================================================================

It runs builds of one image by ``docker buildx`` alone; any other build ends with FAILURE. There is
no cache, and no time is billed.
"""
