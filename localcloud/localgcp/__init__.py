"""The local cloud: stand-ins for Google Cloud on this machine.

======================  ==============================================================
``home``                its folder: paths, identity, environments of programs
``system``              processes, folders and files of this machine
``storage``             Cloud Storage: the emulator, a child process of the server
``lifecycle``           starts and stops the server, and cleans up after a crash
``server``              the server process: object storage, job service and runner
``services``              its services beside object storage, and what connects them
``recorder``            takes what a program sends to Vertex AI, and runs nothing
``reads``               what is asked over REST: permissions, quota, IAM policies, networks
``access``              who gets in: processes of this user
``clients``             what gcloud, gsutil and other clients need
``errors``              exceptions of the services, in one tree
``gcp``                 stand-in for the plugin ``pulumi-resource-gcp``
``alerting``            alerts on lines of jobs' logs, and what they would send
``batch``               stand-in for Batch: jobs of equal tasks
``bigquery``            datasets, tables and jobs of BigQuery, by a real engine of SQL
``serving``             models, endpoints, and the containers that predict
``tuning``              hyperparameter tuning jobs and their trials
``apis``                Google's APIs over gRPC and REST, by Google's own clients
``vertex``              stand-in for the Vertex AI job service and the logs of jobs
``runner``              runs jobs on this machine
``containers``          the container registry
``cloudbuild``          stand-in for Cloud Build
``inventory``           resources and IAM policies, shared by plugin and services
``faults``              faults that a person adds
======================  ==============================================================
"""
