import * as gcp from "@pulumi/gcp";
import * as vertex from "@vertextraining/vertex-training";

const place = { project: "local-training", region: "us-central1" };
const service = { project: place.project, service: "aiplatform.googleapis.com" };
const api = new gcp.projects.Service("vertex-ai", service);
const buckets = { models: { deleteAfterDays: 30 } };
const store = new vertex.TrainingBuckets("store", { ...place, buckets });
const bucket = { project: place.project, location: place.region };
const reports = new gcp.storage.Bucket("reports", bucket, { dependsOn: store });
const writes = { models: store.names.models, reports: reports.name };
const trainer = new vertex.TrainingAccount("trainer", { project: place.project, writes });
const container = { imageUri: "python:3.11", command: ["python", "-c", "print('trained')"] };
const machineSpec = { machineType: "n1-standard-4" };
const spec = {
    workerPoolSpecs: [{ machineSpec, replicaCount: 1, containerSpec: container }],
    serviceAccount: trainer.email,
    scheduling: { timeout: "600s" },
};
const args = { ...place, controlBucket: store.control, spec };
const hello = new vertex.TrainingJob("hello", args, { dependsOn: api });
export const job = hello.jobName;
