"""The Pulumi program: what a training environment on Vertex AI is made of.

========================  ==========================================================
``program``               the architecture on one page; start reading here
``settings``              what a stack file may say
``stack_file``            reads and judges it; the only reader of the config
``stack_yaml``            the same from the files alone, for tools without an engine
``stack_places``          where in the stack's file a mistake stands
``stack_facts``           who runs jobs, and who reads and writes what: for the rules
``naming``                names and labels of everything, with their limits
``grants``                every right the stack may grant, and why
``references``            what ``${kind.name}`` in a job file stands for
``job_files``             all job files of a stack, judged together
``image_context``         the tag of an image that is known by its Dockerfile's folder
``packaging``             code below ``jobs/`` as a deterministic source distribution
``errors``                how mistakes are told: place, value, hint, all at once
``components``            one logical entity a module, its IAM inside
``customjob``             the dynamic provider that submits CustomJobs
``catalog``               facts as data, each row with its source
========================  ==========================================================
"""
