"""Files that several stack files share, by the key ``include``.

============  ===============================================================
``paths``     which paths may be included
``config``    reads the ``config`` of a stack file or of an included one
``merging``   the config of a stack and of what it includes, as one
============  ===============================================================
"""
