import pulumi
import pulumi_gcp as gcp

from vertex_training import TrainingAccount, TrainingBuckets, TrainingJob

place = {"project": "local-training", "region": "us-central1"}
project, location = place["project"], place["region"]
api = gcp.projects.Service("vertex-ai", project=project, service="aiplatform.googleapis.com")
buckets = TrainingBuckets("store", {**place, "buckets": {"models": {"delete_after_days": 30}}})
ready = pulumi.ResourceOptions(depends_on=[buckets])
reports = gcp.storage.Bucket("reports", project=project, location=location, opts=ready)
writes = {"models": buckets.names["models"], "reports": reports.name}
account = TrainingAccount("trainer", {"project": project, "writes": writes})
container = {"imageUri": "python:3.11", "command": ["python", "-c", "print('trained')"]}
machine = {"machineType": "n1-standard-4"}
pool = {"machineSpec": machine, "replicaCount": 1, "containerSpec": container}
job = TrainingJob(
    "hello",
    {
        **place,
        "control_bucket": buckets.control,
        "spec": {
            "workerPoolSpecs": [pool],
            "serviceAccount": account.email,
            "scheduling": {"timeout": "600s"},
        },
    },
    pulumi.ResourceOptions(depends_on=[api]),
)
pulumi.export("job", job.job_name)
