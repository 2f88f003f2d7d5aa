"""YAML documents with the line and column of every value: job files and stack files.

============  ========================================================================
``document``  parses a text, and finds the location of a path
``values``    what was parsed, the bounds of a document, and the loader
``editing``   sets, renames, replaces, moves or removes entries, and leaves all else as it is
============  ========================================================================
"""
