"""Installs the toolchain: Python packages by hash, and a ``pulumi`` with its plugins.

==============  =====================================================================
``main``        the steps of ``make setup`` and ``vt setup``, in order: start here
``layout``      paths of an installation, the cache of builds, subprocesses
``python_env``  uv, virtual environments, pinned packages
``pulumi_cli``  the three sources of ``pulumi``
==============  =====================================================================

:class:`SetupError` ends the setup with a message and a hint. :class:`SubprocessError` becomes a
reason in that message. The modules use only the standard library of Python 3.11.
"""
