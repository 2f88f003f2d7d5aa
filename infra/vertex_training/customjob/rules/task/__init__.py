"""Rules about what a worker pool runs.

===============  =====================================================================
``images``       container images: registry, tag, prebuilt images
``storage``      where a job writes, its packages, file systems that it mounts
``environment``  environment variables, command and arguments; variables that nothing expands
``secrets``      secrets in a request
``tracking``     TensorBoard and experiments
===============  =====================================================================
"""
