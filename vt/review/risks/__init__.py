"""What a reviewer must not miss, computed over all of a plan.

==========  ===============================================================
``access``  who reaches which data, and as which account, before and after
==========  ===============================================================
"""
