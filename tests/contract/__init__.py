"""The local cloud beside Google's own descriptions, as packages ship them.

Protos of Google's clients, and the discovery documents of google-api-python-client. A difference is
mended, or a row of ``differences``.

================  ======================================================================
``description``   discovery documents, and what a value has that they do not say
``served``        what the local cloud serves, by its own tables
``messages``      messages of the clients beside those of the documents
``cloud``         a local cloud in this process, with one of each kind
``story``         a call of every method
``storage``       the same of Cloud Storage's emulator
``wrong``         documents with a mistake, for hypothesis
``differences``   all that differs, and the list of what stays
================  ======================================================================
"""
