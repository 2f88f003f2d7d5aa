"""``vt models`` and ``vt endpoints``: models and endpoints of a stack.

``service`` has the calls of the official clients, ``rows`` a file of rows and their answers;
``models`` and ``endpoints`` are the command lines.
"""
