"""The Pulumi program: what a training environment on Vertex AI is made of.

========================  ==========================================================
``program``               the architecture on one page; start reading here
``settings``              what a stack file may say
``stack_file``            reads and judges it; the only reader of the config
``naming``                names and labels of everything, with their limits
``references``            what ``${kind.name}`` in a job file stands for
``packaging``             code below ``jobs/`` as a deterministic source distribution
``errors``                how mistakes are told: place, value, hint, all at once
``components``            one logical entity a module, its IAM inside
``customjob``             the dynamic provider that submits CustomJobs
``catalog``               facts as data, each row with its source
========================  ==========================================================
"""
