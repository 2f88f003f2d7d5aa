"""What has to be there before the first deployment, and outlives every stack.

================  ===================================================================
``program``       the order of things on one page
``settings``      what ``Pulumi.<environment>.yaml`` in this folder may say
``config``        reads and judges it
``state``         the bucket for Pulumi's state and the key for its secrets
``federation``    GitHub's tokens instead of keys
``identities``    an account of CI: who becomes it, and what it may do
``permissions``   what plan and deploy need, derived from the resources the stacks use
================  ===================================================================
"""
