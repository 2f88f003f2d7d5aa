"""YAML documents with the line and column of every value: job files and stack files.

============  ========================================================================
``document``  parses a text, and finds the location of a path
``values``    what was parsed, and the bounds of a document
``editing``   sets single values, and leaves all else as it is
``mending``   renames, replaces or removes single entries, and proves that no more changed
``moving``    the same for an entry that moves, and for an item of which two are made
``loader``    the YAML loader of this project
============  ========================================================================
"""
