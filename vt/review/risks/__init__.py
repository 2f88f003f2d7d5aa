"""What a reviewer must not miss, computed over all of a plan.

============  ===============================================================
``access``    who reaches which data, and as which account, before and after
``exposure``  what is opened to everybody, and what reaches anywhere
``levels``    policies whose level is lowered
``limits``    limits that are raised
``losses``    data that is lost, or no longer kept, though its resource stays
============  ===============================================================
"""
