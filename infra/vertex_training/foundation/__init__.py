"""Resources that exist before the first deployment and outlive every stack.

================  ===================================================================
``program``       declares all resources in order, on one page
``settings``      the config of an environment: models and reader
``state``         the bucket for Pulumi's state and the key for its secrets
``federation``    Workload Identity Federation with GitHub, in place of keys
``identities``    a service account of CI, with its grants and who may impersonate it
``conditions``    custom roles: permissions by resource types, and what ``deploy`` may change
``denial``        the deny policy: what CI's accounts cannot do, whatever roles they hold
================  ===================================================================
"""
