"""The components of a stack: one logical entity a module, each with its IAM inside.

==========================  ============================================================
``apis``                    the project's APIs, and the Vertex AI service agent
``storage``                 buckets and the objects kept in them
``registry``                the Docker repository
``image_builds``            the account that builds images, and who may start builds
``secrets``                 containers of secrets, never their values
``identities``              accounts that jobs run as, their grants, and who may act as them
``packages``                code of the jobs, uploaded
``shared_vpc``              the host project of a Shared VPC
``network``                 the network jobs reach
``peering``                 its connection to Vertex AI by peering
``psc``                     its connection by a Private Service Connect interface
``capacity``                reservations
``iam``                     the stack's own grants for network and capacity
``training``                the jobs
``ordering``                what a job waits for, and what goes first
==========================  ============================================================
"""
