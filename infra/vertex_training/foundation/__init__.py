"""Resources that exist before a stack is first deployed, and that outlive all stacks.

================  ===================================================================
``program``       declares all resources in order
``settings``      the config of an environment: models and reader
``state``         the bucket for Pulumi's state and the key for its secrets
``federation``    Workload Identity Federation with GitHub, without keys
``identities``    a service account of CI, with its grants and its impersonators
``conditions``    custom roles: permissions by resource types, and conditions for ``deploy``
``denial``        the deny policy: forbidden permissions of CI's accounts, regardless of roles
================  ===================================================================
"""
