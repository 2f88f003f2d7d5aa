"""``vt data``: snapshots in buckets; and the objects of a bucket, for other commands.

=============  ==========================================================
``snapshots``  results of queries that the stack keeps: list, diff, delete
``download``   objects of a place: a list, or files of a local folder
``cloud``      buckets and objects, and errors of the service
=============  ==========================================================
"""
