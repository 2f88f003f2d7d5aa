"""Stand-in for Cloud Build, which runs builds of one image with this machine's build engine.

===========  ==========================================================================
``records``  builds and their logs, as files and as entries of Cloud Logging
``service``  creates, returns, lists and cancels builds
``runner``   runs builds of one image with ``docker buildx``; permissions of accounts
===========  ==========================================================================

Other builds end with FAILURE.
"""
