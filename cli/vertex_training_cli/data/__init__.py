"""``vt data``: snapshots in buckets; and the objects of a bucket, for other commands.

=============  ==========================================================
``snapshots``  command lines that list, compare and delete snapshots
``download``   lists or downloads the objects of a place
``cloud``      buckets and objects, and errors of the service
=============  ==========================================================
"""
