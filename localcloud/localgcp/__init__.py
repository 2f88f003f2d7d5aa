"""The local cloud: stand-ins for Google Cloud on this machine.

======================  ==============================================================
``home``                the home folder: paths, marker, environments of programs
``system``              processes, folders and files of this machine
``storage``             Cloud Storage with an emulator as a child process
``lifecycle``           starts and stops the server, and cleans up after a crash
``server``              the server process
``services``            all services of the server except Cloud Storage
``recorder``            records a program's requests to Vertex AI without running jobs
``reads``               REST methods: permissions, quotas, IAM policies, networks
``access``              restricts access to processes of this user
``clients``             settings of gcloud, gsutil and other clients
``errors``              exceptions of the local cloud
``gcp``                 stand-in for the plugin ``pulumi-resource-gcp``
``alerting``            alerts on log lines of jobs
``batch``               stand-in for Batch
``bigquery``            stand-in for BigQuery, with DuckDB
``serving``             models, endpoints and predictions
``tuning``              hyperparameter tuning jobs and their trials
``apis``                Google's APIs over gRPC and REST
``vertex``              stand-in for the Vertex AI job service and the logs of jobs
``runner``              runs jobs on this machine
``containers``          the container registry
``cloudbuild``          stand-in for Cloud Build
``inventory``           resources and IAM policies, shared by the plugin and all services
``faults``              injected faults
======================  ==============================================================
"""
