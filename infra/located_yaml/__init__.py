"""YAML documents that know the line and column of every value.

Job files and stack files are read with it. ``document`` parses, ``values`` holds what was parsed
and the bounds of a document.
"""
