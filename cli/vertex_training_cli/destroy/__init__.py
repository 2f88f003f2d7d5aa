"""``vt destroy``: ``pulumi destroy``, after it has shown what is lost and has asked for the name.

===========  =================================================================
``losses``   what the state has that would be lost, and what refuses to go
``command``  the command line, and what running jobs and buckets hold now
===========  =================================================================
"""
