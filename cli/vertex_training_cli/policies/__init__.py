"""How policy packs judge a plan.

``levels``  the level of each policy: of the stack file, then of ``--policy-levels``
"""
