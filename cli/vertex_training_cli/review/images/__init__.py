"""Images in a review: which image a job runs after the change, and where it came from.

===========  ============================================================
``changes``  images whose digest changes, each once, with the jobs on them
===========  ============================================================
"""
