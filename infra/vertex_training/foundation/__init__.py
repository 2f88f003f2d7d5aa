"""Resources that exist before the first deployment and outlive every stack.

================  ===================================================================
``program``       declares all resources in order, on one page
``settings``      the models of ``bootstrap/Pulumi.<environment>.yaml``
``config``        reads and validates such a file
``state``         the bucket for Pulumi's state and the key for its secrets
``federation``    Workload Identity Federation with GitHub, in place of keys
``identities``    a service account of CI, with its grants and who may impersonate it
``permissions``   permissions of the accounts, derived from the stacks' resource types
``conditions``    which resources and which grants ``deploy`` may change: its custom roles
``denial``        the deny policy: what CI's accounts cannot do, whatever roles they hold
================  ===================================================================
"""
