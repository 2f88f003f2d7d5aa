"""``vt data``: folders of data sets and configs, to and from a bucket.

=============  =====================================================================
``command``    the command lines
``places``     BUCKET/PREFIX of a command line: which bucket, which objects
``files``      the files of a folder, and where objects may be written
``comparison`` what differs between a folder and a bucket
``cloud``      lists objects; errors of the service as plain lines
``upload``     files to objects, by the official client
``download``   objects to files, by the official client
``sessions``   uploads of large files, which go on after a kill
``snapshots``  results of queries that the stack keeps: list, diff, delete
``progress``   how far it is, for people
=============  =====================================================================
"""
