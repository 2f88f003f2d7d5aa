"""Plans that derive from a stack's settings.

===================  =================================================================
``network``          names, owners and grants of the network
``reservations``     names, owners, grants and costs of reservations
``access``           access of members to data, directly or through accounts; open firewall rules
``grants``           every grant that the stack may make, with its reason; grants of other teams
``stack_grants``     grants for accounts, images, the key, ``members``, jobs and models
``facts``            values of ``${kind.name}`` in job files; facts for their rules; served models
``packages``         code below ``jobs/`` as a source distribution; files to upload to buckets
===================  =================================================================
"""
