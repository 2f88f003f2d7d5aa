"""The local cloud: stand-ins for Google Cloud on this machine.

======================  ==============================================================
``__main__``            ``localgcp``, the command
``home``                ``VT_LOCAL_HOME``: paths, and the environment for programs
``home_identity``       whether a folder is a home of this user, and not one of a clone
``environment``         environments of programs that use it, of the server, of installers
``lifecycle``           starts and stops the server, and cleans up after a crash
``server``              the server process: object storage, job service and runner
``server_info``         ``server.json``: how commands find the server
``recorder``            takes what a program sends to Vertex AI, and runs nothing
``storage``             the object storage emulator, a child process of the server
``reads``               what is asked over REST: permissions, quota, IAM policies, networks
``resources``           resources of the inventory over REST, for clients beside the plugin
``storage_requests``    which requests pass to the emulator, and in which form
``storage_uploads``     sessions of resumable uploads
``access``              who gets in: processes of this user
``clients``             what gcloud, gsutil and other clients need
``processes``           identity and end of child processes; their records
``orphaned_plugins``    ends plugins of a ``pulumi`` that was killed
``threads``             threads that end with their process
``tools``               installs the two programs that come first on ``PATH``
``pulumi_shim``         ``pulumi`` of the local shell
``root_directory``      files below one folder; no link leads out of it
``git``                 how git is asked about a checkout
``folders``             folders that may be there or gone already
``errors``              exceptions of the services, in one tree
``gcp``                 stand-in for the plugin ``pulumi-resource-gcp``
``alerting``            alerts on lines of jobs' logs, and what they would send
``pipelines``           stand-in for training pipelines of one job
``experiments``         stand-in for experiments: metadata and TensorBoards
``batch``               stand-in for Batch: jobs of equal tasks
``bigquery``            datasets, tables and jobs of BigQuery, by a real engine of SQL
``serving``             models, endpoints, and the containers that predict
``tuning``              hyperparameter tuning jobs and their trials
``apis``                Google's APIs over gRPC and REST, by Google's own clients
``vertex``              stand-in for the Vertex AI job service and the logs of jobs
``runner``              runs jobs on this machine
``containers``          the container registry
``cloudbuild``          stand-in for Cloud Build
``secretmanager``       values of secrets, by the rights of a job's account
``projects``            which projects are local, and their numbers
``inventory``           resources and IAM policies, shared by plugin and services
``faults``              faults that a person adds
======================  ==============================================================
"""
