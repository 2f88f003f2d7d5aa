"""Secret Manager as far as a job needs it: the values of secrets, with the rights of its account.

===========  =========================================================================
``values``   values that a person set, one file each, for the owner alone
``service``  ``AccessSecretVersion`` on gRPC, and over REST as every method
===========  =========================================================================
"""
