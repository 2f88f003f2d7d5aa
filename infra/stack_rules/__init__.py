"""Rules across the keys of a stack file: what cannot be, and what would surprise. Pure.

================  ====================================================================
``names``         names that Google Cloud would refuse, keys of what is not there
``files``         files that the stack file names
``network``       the sections ``network`` and ``sharedVpc``
``reservations``  the section ``reservations``
``limits``        what the limits say of the stack as a whole
``advice``        what is no mistake, and would surprise its owner
================  ====================================================================
"""
