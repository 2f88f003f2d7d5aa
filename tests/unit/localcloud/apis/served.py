"""What the local cloud serves: methods by path, and their rules of REST."""

from localgcp.cloudbuild.service import CloudBuild
from localgcp.reads.secretmanager import SecretService
from localgcp.tuning.service import TuningService
from localgcp.vertex.log_entries import LogService
from localgcp.vertex.service import JobService, PipelineService

SERVICES = (JobService, TuningService, PipelineService, LogService, SecretService, CloudBuild)
METHODS = {each.path: each for service in SERVICES for each in service.api.methods(service)}
RULES = [rule for method in METHODS.values() for rule in method.rules()]
