"""What the stack is made of: one logical entity a module, each with its IAM inside.

==============  ====================================================================
``apis``        the project's APIs, and Google's own account for Vertex AI
``storage``     buckets and the objects kept in them
``registry``    the Docker repository
``secrets``     containers of secrets, never their values
``identities``  accounts that jobs run as, their rights, and who may act as them
``packages``    code of the jobs, uploaded
``shared_vpc``  the host project of a Shared VPC
``network``     the network jobs reach, with ``peering`` or ``psc`` inside
``capacity``    reservations
``iam``         grants that network and capacity need, where they are the stack's to make
``training``    the jobs
==============  ====================================================================
"""
