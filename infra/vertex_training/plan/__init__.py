"""Consequences of a stack's settings, before anything exists. Pure.

===================  =================================================================
``network``          names, owners and grants of the network
``firewalls``        what firewall rules let through
``reservations``     the same for reservations, and what they cost
``access``           who reaches what data, and through which accounts, by IAM and by access lists
``grants``           every grant that the stack may make, and why
``external_grants``  grants that another team must make, as a table and as commands
``stack_grants``     grants for accounts, images, the key, ``members``, jobs and models
``facts``            the stack as job files see it: ``${kind.name}``, and facts for their rules
``serving``          model versions, and endpoints with what they serve
``packages``         code below ``jobs/`` as a source distribution; files kept in buckets
===================  =================================================================
"""
