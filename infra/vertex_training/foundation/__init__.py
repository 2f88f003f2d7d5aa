"""Resources that exist before a stack is first deployed, and that outlive all stacks.

==============  =====================================================================
``program``     declares all resources in order: state bucket, key, accounts of CI
``settings``    the settings of an environment: models and reader
``federation``  Workload Identity Federation with GitHub, without keys
``conditions``  custom roles: permissions by resource type, and conditions for ``deploy``
``denial``      the deny policy: permissions that CI's accounts never have
==============  =====================================================================
"""
