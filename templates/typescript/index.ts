// A training job on Vertex AI, with the buckets and the account that it uses.
// Project and region are `gcp:project` and `gcp:region` of the stack's file.
import * as gcp from "@pulumi/gcp";
import * as vertex from "@vertextraining/vertex-training";

const vertexAi = new gcp.projects.Service("vertex-ai", { service: "aiplatform.googleapis.com" });
const store = new vertex.TrainingBuckets("store", { buckets: { models: {} } });
const trainer = new vertex.TrainingAccount("trainer", { writes: { models: store.names.models } });
const pool = {
    machineSpec: { machineType: "n1-standard-4" },
    replicaCount: 1,
    containerSpec: { imageUri: "python:3.11", command: ["echo", "hello"] },
};
const hello = new vertex.TrainingJob(
    "hello",
    {
        controlBucket: store.control,
        spec: {
            workerPoolSpecs: [pool],
            serviceAccount: trainer.email,
            scheduling: { timeout: "600s" },
        },
    },
    { dependsOn: vertexAi },
);
export const job = hello.jobName;
