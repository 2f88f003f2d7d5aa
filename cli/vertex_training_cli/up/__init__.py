"""``vt up`` and ``vt destroy``: run ``pulumi``, with checks before it and cleanup after it.

==============  =================================================================
``command``     ``vt up``: removes locks and pending creations of killed runs
``lost_state``  imports existing resources after a state was lost
``destroy``     ``vt destroy``: lists or refuses losses, asks for the stack's name
==============  =================================================================
"""
