"""Google's APIs over gRPC and REST, based on messages and rules of Google's own clients.

================  ======================================================================
``messages``      message types of Vertex AI, without the rest of its client
``client``        path, request, response and rules of REST of each method
``server``        serves objects that have an API's methods; hooks wrap calls
``rest``          answers a connection of HTTP by calls to the gRPC server
``transcoding``   a request of HTTP as the message of its method
``json_shapes``   whether JSON fits a message, with every mistake in it
``discovery``     methods of REST that no client here has, by Google's discovery documents
``field_rules``   required fields and labels of every message, by those documents
``documented``    rows of further rules, from the prose of Google's documentation
``refusals``      errors in the words of the services
================  ======================================================================

A class serves an API: its ``api`` names the client, its methods have the names of the client's and
take and return the same messages.
"""
