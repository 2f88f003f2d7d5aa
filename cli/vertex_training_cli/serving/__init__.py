"""``vt models`` and ``vt endpoints``: models and endpoints of a stack.

``service`` has the calls of the official clients, ``rows`` the rows of a file;
``models`` and ``endpoints`` are the command lines.
"""
