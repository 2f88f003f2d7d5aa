"""``vt new job`` and ``vt jobs rerun``: jobs written into files, shown as a diff first.

=========  =================================================
``job``    a sample job, and the stack's entries for it
``rerun``  one more run of a job, with other arguments
=========  =================================================
"""
