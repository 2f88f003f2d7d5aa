"""Access control: only processes of root and of the user who started the local cloud may call.

====================  ==================================================================
``callers``           returns the owner of a connection: a user or a job
``web``               HTTP servers that refuse other users and web pages
``gate``              gRPC servers that refuse other users and web pages
``network``           a private network for a server without access control
``engine_network``    a private network for ``pulumi`` and its child processes
``pulumi_shim``       ``pulumi`` of the local shell, which runs in such a network
``isolation``         runs a command without network, capabilities or Unix sockets
====================  ==================================================================

Handlers of HTTP servers derive from ``web.LocalHandler``. A gRPC server is a ``gate.GatedServer``.
Other servers call ``callers.caller`` once for each connection.
"""
