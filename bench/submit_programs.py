"""Programs that ``bench/submit.py`` measures; each is a text with places for its arguments.

``pool``, ``project`` and ``region`` say what is submitted and where, ``provider`` which one of
``PROVIDERS`` a resource of the floor has.
"""

from __future__ import annotations

from typing import Final

FLOOR: Final = """\
import json
from pathlib import Path
from pulumi.dynamic import Resource
from floor import {provider}
class Trivial(Resource, module="bench", name="Trivial"):
    def __init__(self, name):
        super().__init__({provider}(), name, {{"text": name}})
for key in json.loads(Path("jobs.json").read_text()):
    Trivial(key)
"""
PROVIDERS: Final = """\
from pulumi.dynamic import CreateResult, ResourceProvider
class Nothing(ResourceProvider):
    serialize_as_secret_always = False
    def create(self, props):
        return CreateResult(props["text"], props)
class Bare(ResourceProvider):
    serialize_as_secret_always = False
    def create(self, props):
        from vertex_training.customjob.google.job_service import connect
        from vertex_training.customjob.google.vertex_api import CustomJob
        job = connect("{project}", "{region}")._client.create_custom_job(
            parent="projects/{project}/locations/{region}",
            custom_job=CustomJob(display_name=props["text"],
                                 job_spec={{"worker_pool_specs": [{pool}]}}))
        return CreateResult(job.name, props)
"""
#: The high-level SDK reaches the local service by a client without TLS; it makes none of its own,
#: which it would do anew at each call.
HIGH_LEVEL: Final = """\
import os, sys, time
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform
from google.cloud.aiplatform import initializer
from vertex_training.customjob.google.job_service import client
local = client("{project}", "{region}")
initializer.global_config.create_client = lambda *_, **__: local
def submit(name):
    job = aiplatform.CustomJob(name, [{pool}], project="{project}", location="{region}",
                               staging_bucket="gs://x", credentials=AnonymousCredentials())
    job.submit()
times = []
for number in range(int(sys.argv[1])):
    began = time.perf_counter()
    submit(f"sdk-{{number}}")
    times.append(time.perf_counter() - began)
print(sorted(times)[len(times) // 2])
"""
