"""YAML documents with the line and column of every value: job files and stack files.

============  ========================================================================
``document``  parser of a text; location of a path
``values``    parsed values, limits of a document, and the loader
``editing``   changes of single entries that preserve the rest of the text
============  ========================================================================
"""
