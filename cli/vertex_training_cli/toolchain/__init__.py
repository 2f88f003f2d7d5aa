"""Install the toolchain: Python packages by hash, and a ``pulumi`` with its plugins.

====================  ===================================================================
``main``          the steps of ``make setup`` and ``vt setup``, in order: start here
``layout``        paths of the checkout, its virtual environment and the cache
``console``       progress, subprocesses, and the exceptions of this package
``cache``         the cache outside of the checkout: lock and atomic writes
``python_env``    uv, the virtual environment, the pinned packages
``policy_env``    the environment of the policy pack
``pulumi_cli``    the three sources of a ``pulumi``
``releases``      official archives, compared with their pinned SHA-256
``build``         builds the engine from source
====================  ===================================================================

``offline_engine/`` pins the modules of the engine, and has the stand-in Python language host.

Exceptions: :class:`SetupError` ends setup with a message and a hint. :class:`SubprocessError` and
:class:`SourceUnavailableError` are caught on the way and become its reasons.

Standard library only, Python 3.11 or newer.
"""
