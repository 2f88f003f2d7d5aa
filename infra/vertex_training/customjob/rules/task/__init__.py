"""Rules about what a worker pool runs.

===============  =====================================================================
``images``       container images: registry, tag, prebuilt images
``storage``      where a job writes, and where its packages are
``mounts``       file systems that a job mounts
``environment``  environment variables, command and arguments
``expansion``    variables that nothing expands
``secrets``      secrets in a request
``tracking``     TensorBoard and experiments
===============  =====================================================================
"""
