"""REST beside gRPC, by the API's own rules: ``gcloud``, curl and the REST transports of clients.

================  ======================================================================
``http_rules``    ``http_rules.json``: which request of HTTP is which method (pure)
``transcoding``   a request of HTTP as the method's message, by its descriptor (pure)
``methods``       the messages of the methods that the local cloud serves
``front``         answers a connection of HTTP by calls to the gRPC server
================  ======================================================================

Nothing here is written for a single method: a method is a row in ``methods`` and its rule in
``http_rules.json``, which ``tools/generate/http_rules.py`` takes from Google's client.
"""
