"""A training job on Vertex AI, with the buckets and the account that it uses.

Project and region are `gcp:project` and `gcp:region` of the stack's file.
"""

import pulumi
import pulumi_gcp as gcp

from vertex_training import TrainingAccount, TrainingBuckets, TrainingJob

vertex_ai = gcp.projects.Service("vertex-ai", service="aiplatform.googleapis.com")
buckets = TrainingBuckets("store", buckets={"models": {}})
account = TrainingAccount("trainer", writes={"models": buckets.names["models"]})
pool = {
    "machineSpec": {"machineType": "n1-standard-4"},
    "replicaCount": 1,
    "containerSpec": {"imageUri": "python:3.11", "command": ["echo", "hello"]},
}
job = TrainingJob(
    "hello",
    control_bucket=buckets.control,
    spec={
        "workerPoolSpecs": [pool],
        "serviceAccount": account.email,
        "scheduling": {"timeout": "600s"},
    },
    opts=pulumi.ResourceOptions(depends_on=[vertex_ai]),
)
pulumi.export("job", job.job_name)
