"""Google's APIs over gRPC and REST, with the messages and REST rules of Google's clients.

================  ======================================================================
``client``        messages, paths and REST rules of the methods
``server``        serves the methods of objects; hooks wrap calls; errors of methods
``rest``          answers REST requests through calls to the gRPC server
``transcoding``   converts REST requests to messages, and checks their JSON
``discovery``     REST methods from Google's discovery documents
``field_rules``   rules for the fields of messages
================  ======================================================================

A class that serves an API has the client's attribute ``api``, and methods with the names, requests
and responses of the client's methods.
"""
