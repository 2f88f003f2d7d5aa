"""Installs the toolchain: Python packages by hash, and a ``pulumi`` with its plugins.

====================  ===================================================================
``main``          the steps of ``make setup`` and ``vt setup``, in order: start here
``layout``        paths of the checkout and its virtual environment; the cache of builds
``console``       progress, subprocesses, and the exceptions of this package
``python_env``    uv, virtual environments, pinned packages
``pulumi_cli``    the three sources of a ``pulumi``
====================  ===================================================================

``offline_engine/`` pins the modules of the engine, and has the stand-in Python language host.

Exceptions: :class:`SetupError` ends setup with a message and a hint. :class:`SubprocessError` is
caught on the way and becomes its reason.

Standard library only, Python 3.11 or newer.
"""
