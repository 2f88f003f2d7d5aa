"""``vt data``: copy folders to and from a bucket, and manage its snapshots.

=============  ==========================================================
``command``    the command lines of ``push``, ``pull`` and ``ls``
``cloud``      buckets and objects, and errors of the service
``files``      the files of a folder, and where objects may be written
``transfer``   files to objects, none that looks like a secret, and objects to files
``snapshots``  results of queries that the stack keeps: list, diff, delete
=============  ==========================================================
"""
