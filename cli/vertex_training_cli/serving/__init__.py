"""``vt models`` and ``vt endpoints``: models and endpoints of a stack.

``models`` and ``endpoints`` are the command lines, ``service`` reads through the official clients.
"""
