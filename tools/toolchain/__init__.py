"""How the toolchain gets onto a machine: Python packages by hash, and a `pulumi` that works.

Read `main.py` first: the steps in order. Standard library only, Python 3.11 or newer.
"""
