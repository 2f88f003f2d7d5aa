"""The Pulumi program: what a training environment on Vertex AI is made of.

========================  ==========================================================
``program``               the architecture on one page; start reading here
``settings``              what a stack file may say, with ``section``, the base of all parts,
                          ``settings_network`` and ``settings_capacity``
``stack_file``            reads and judges it; the only reader of the config
``stack_yaml``            the same from the files alone, for tools without an engine
``stack_names``           which stacks a project has
``stack_places``          where in the stack's file a mistake stands
``stack_facts``           who runs jobs, and who reads and writes what: for the rules
``naming``                names and labels of everything, with their limits
``network_plan``          what follows from the settings of the network: names, owners, rights
``reservation_plan``      the same for reservations, and what they cost
``network_rules``         what cannot be in the section of the network, with
                          ``reservation_rules``, and ``advice``, what would surprise
``host_duties``           what other teams must do, as a table and as commands
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
