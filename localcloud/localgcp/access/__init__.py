"""Access control: only processes of root and of the user who started the local cloud have access.

====================  ==================================================================
``callers``           ``caller(connection)``: may this process call? Its user, or its job
``web``               for HTTP servers: refuses other users and web pages
``gate``              for gRPC servers: the same
``network``           a network of its own for a server that checks nothing
``engine_network``    the same for ``pulumi`` and what it starts, which reaches the local cloud
``pulumi_shim``       ``pulumi`` of the local shell, which runs the engine in that network
``isolation``         a command with no network but ports of ours, no capability and no other socket
====================  ==================================================================

A server of HTTP takes ``web.LocalHandler`` for its handler. A server of gRPC is a
``gate.GatedServer``. Another kind of server asks ``callers.caller`` once for each connection.
"""
