"""What a reviewer must not miss, computed over all of a plan.

============  ===============================================================
``access``    who reaches which data, and as which account, before and after
``exposure``  what is opened to everybody, and what reaches anywhere
``levels``    policies whose level is lowered
``limits``    limits that are raised
``losses``    data that is lost, or no longer kept, though its resource stays
``objects``   objects that the stack keeps in buckets, by folder
``renames``   ``formerly`` with a name that nothing ever had
``refusals``  what Google refuses half-way, or what has no effect
============  ===============================================================
"""
