"""``vt up`` and ``vt destroy``: run ``pulumi``, with checks before it and cleanup after it.

==============  =================================================================
``command``     ``vt up``: clears the traces of a killed run before and after it
``lost_state``  after a state was lost: imports what the cloud has
``destroy``     ``vt destroy``: shows what is lost or refuses to go, asks for the stack's name
==============  =================================================================
"""
