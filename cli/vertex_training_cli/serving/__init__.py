"""``vt models`` and ``vt endpoints``: what a stack has in the registry and behind its endpoints.

``service`` has the calls of the official clients, ``rows`` a file of rows and their answers;
``models`` and ``endpoints`` are the command lines.
"""
