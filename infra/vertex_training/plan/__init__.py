"""Plans that derive from a stack's settings.

===================  =================================================================
``network``          names, owners, grants and costs of the network and of reservations
``access``           access of members to data, directly or through accounts; open firewall rules
``grants``           every grant of the stack, with its reason; grants of other teams
``facts``            values of ``${kind.name}`` in job files; facts for their rules; served models
``packages``         code below ``jobs/`` as a source distribution; files to upload to buckets
===================  =================================================================
"""
