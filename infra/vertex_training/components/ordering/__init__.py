"""In which order resources go: what a job waits for, and what is refused before anything else goes.

==========================  ============================================================
``component_dependencies``  dependencies of a job on components as such
``protection``              the first to go, and the one that refuses
==========================  ============================================================
"""
