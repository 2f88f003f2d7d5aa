"""The methods of an API as Google's client defines them: path, messages and REST rules.

The message types of Vertex AI and Batch are loaded without the slow import of Google's clients.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, ClassVar, Final, Protocol
from urllib.parse import unquote

from google.longrunning import operations_pb2
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

_RAN: Final = "__lazy_package_ran__"
_lock: Final = threading.RLock()


class _LazyPackage(ModuleType):
    """A package that executes ``__init__.py`` only when a name other than a submodule is read."""

    def __getattr__(self, name: str) -> Any:
        if importlib.util.find_spec(f"{self.__name__}.{name}") is not None:
            return importlib.import_module(f"{self.__name__}.{name}")
        with _lock:  # other threads wait until all names are defined
            if _RAN not in vars(self):
                spec = self.__spec__
                assert spec is not None
                assert spec.loader is not None
                vars(self)[_RAN] = True  # set before the execution, which reads names
                try:
                    spec.loader.exec_module(self)
                except BaseException:
                    del vars(self)[_RAN]
                    raise
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None


def load_lazily(name: str) -> None:
    """Make a package importable without executing ``__init__.py``, unless already imported."""
    with _lock:
        parent, _, own = name.rpartition(".")
        # Finding a package's specification imports the parent package.
        if name not in sys.modules and (spec := importlib.util.find_spec(name)) is not None:
            package = importlib.util.module_from_spec(spec)
            package.__class__ = _LazyPackage
            sys.modules[name] = package
            setattr(sys.modules[parent], own, package)


for _package in ("google.cloud.aiplatform_v1", "google.cloud.batch_v1"):
    load_lazily(_package)
    load_lazily(f"{_package}.types")

from google.cloud.aiplatform_v1.types import (  # noqa: E402
    custom_job,
    endpoint,
    endpoint_service,
    hyperparameter_tuning_job,
    job_service,
    model,
    model_service,
    operation,
    pipeline_service,
    prediction_service,
    tensorboard,
    tensorboard_service,
    training_pipeline,
)
from google.cloud.batch_v1.types import batch  # noqa: E402
from google.cloud.batch_v1.types import job as batch_job  # noqa: E402

__all__ = [
    "Api",
    "HttpRule",
    "Implementation",
    "Method",
    "batch",
    "batch_job",
    "custom_job",
    "endpoint",
    "endpoint_service",
    "find_rule",
    "hyperparameter_tuning_job",
    "job_service",
    "load_lazily",
    "model",
    "model_service",
    "operation",
    "pipeline_service",
    "prediction_service",
    "tensorboard",
    "tensorboard_service",
    "training_pipeline",
]

_VARIABLE: Final = re.compile(r"\{([\w.]+)(?:=([^}]+))?\}")
_OPERATIONS: Final = "google.longrunning.Operations"
#: Resources with operations in the local cloud.
_TARGETS: Final = [f"projects/*/locations/*{below}" for below in ("", "/models/*", "/endpoints/*")]
#: REST rules that Google's clients lack (google/logging/v2/logging.proto).
_OTHER_RULES: Final[Mapping[str, Sequence[Mapping[str, str]]]] = {
    f"{_OPERATIONS}/GetOperation": [
        {"method": "get", "uri": f"/v1/{{name={target}/operations/*}}"} for target in _TARGETS
    ],
    f"{_OPERATIONS}/ListOperations": [
        {"method": "get", "uri": f"/v1/{{name={target}}}/operations"} for target in _TARGETS
    ],
    "google.logging.v2.LoggingServiceV2/ListLogEntries": [
        {"method": "post", "uri": "/v2/entries:list", "body": "*"}
    ],
}


@dataclass(frozen=True)
class Api:
    """An API of Google Cloud, as the client's package and the service's module."""

    package: str
    module: str

    def methods(self, implementation: object) -> list[Method]:
        """Return the methods of the API that a class or an object implements."""
        transport = self._transport("grpc", "GrpcTransport")
        made, channel = transport.__new__(transport), _RecordingChannel()
        made._stubs, made._logged_channel = {}, channel
        names = [
            name
            for name in dir(implementation)
            if isinstance(getattr(transport, name, None), property)
            and name not in ("grpc_channel", "kind", "operations_client")
        ]
        for name in names:
            getattr(made, name)
        return [
            Method(self, path.removeprefix("/"), name, request, response)
            for name, (path, request, response) in zip(names, channel.recorded, strict=True)
        ]

    def http_options(self, name: str) -> list[Mapping[str, str]]:
        """Return the REST rules of a method as the client defines them."""
        rest = self._transport("rest_base", "RestTransport", "_Base")
        return getattr(rest, f"_Base{name}")._get_http_options()

    def _transport(self, module: str, suffix: str, prefix: str = "") -> Any:
        folder = f"{self.package}.services.{self.module}"
        for package in (self.package, folder, f"{folder}.transports"):
            load_lazily(package)
        name = "".join(map(str.title, self.module.split("_")))
        transports = importlib.import_module(f"{folder}.transports.{module}")
        return getattr(transports, prefix + name + suffix)


class Implementation(Protocol):
    """An object with methods of ``api``, which return the response or raise ApiError."""

    api: ClassVar[Api]


@dataclass(frozen=True)
class Method:
    """A method of an API; ``request`` and ``response`` are types of the client."""

    api: Api
    path: str
    """The method's path ``PACKAGE.SERVICE/METHOD``."""
    verb: str
    """The method's name in Python, such as ``create_custom_job``."""
    request: Any
    response: Any

    @property
    def name(self) -> str:
        """The method's short name, such as ``CreateCustomJob``."""
        return self.path.rpartition("/")[2]

    def read(self, data: bytes) -> Any:
        """Parse a serialized request."""
        kind = self.request
        return kind.FromString(data) if issubclass(kind, Message) else kind.deserialize(data)

    def write(self, response: Any) -> bytes:
        """Serialize a response."""
        if isinstance(response, Message):
            return response.SerializeToString()
        return self.response.serialize(response)

    def plain_request(self) -> Message:
        """Return an empty protobuf request."""
        return _plain(self.request)()

    def plain_response(self) -> Message:
        """Return an empty protobuf response."""
        return _plain(self.response)()

    def rules(self) -> list[HttpRule]:
        """Return the REST rules of the method, in order of precedence."""
        rules = _OTHER_RULES.get(self.path) or self.api.http_options(self.name)
        return [
            HttpRule(self, rule["method"].upper(), rule["uri"], rule.get("body", ""))
            for rule in rules
        ]


class _RecordingChannel:
    def __init__(self) -> None:
        self.recorded: list[tuple[str, Any, Any]] = []

    def unary_unary(
        self, path: str, request_serializer: Any, response_deserializer: Any
    ) -> Callable[..., None]:
        _, service, name = path.split("/")
        if service == _OPERATIONS:  # the client ignores the response of WaitOperation
            types = operations_pb2.DESCRIPTOR.services_by_name["Operations"].methods_by_name[name]
            request, response = map(GetMessageClass, (types.input_type, types.output_type))
        else:  # the serializers are methods of message types
            request, response = request_serializer.__self__, response_deserializer.__self__
        self.recorded.append((path, request, response))
        return lambda *_: None


def _plain(kind: Any) -> Callable[[], Message]:
    return kind if issubclass(kind, Message) else kind.pb()


@dataclass(frozen=True)
class HttpRule:
    """One REST rule of ``method``."""

    method: Method
    verb: str
    template: str
    body: str
    """The request's field in the body; ``*`` for the whole request, empty without a body."""

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """Return the paths of the message fields in the template."""
        return tuple(variable[1] for variable in _VARIABLE.finditer(self.template))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        text, end = "", 0
        segments = {"*": "[^/]+", "**": ".+"}
        for variable in _VARIABLE.finditer(self.template):
            parts = (variable[2] or "*").split("/")
            form = "/".join(segments.get(part, re.escape(part)) for part in parts)
            text += re.escape(self.template[end : variable.start()]) + f"({form})"
            end = variable.end()
        return re.compile(text + re.escape(self.template[end:]))

    def match(self, verb: str, path: str) -> dict[str, str] | None:
        """Return the values of the template's fields; None if the request does not match."""
        path_match = self._pattern.fullmatch(path) if verb == self.verb else None
        if path_match is None:
            return None
        # Encoded slashes stay encoded, because they do not separate segments.
        return {
            name: "%2F".join(unquote(part) for part in re.split("%2[Ff]", value))
            for name, value in zip(self.fields, path_match.groups(), strict=True)
        }


def find_rule(
    rules: Iterable[HttpRule], verb: str, path: str
) -> tuple[HttpRule, dict[str, str]] | None:
    """Return the first matching rule with the fields of its path; rules with verbs come first."""
    for rule in sorted(rules, key=lambda rule: ":" not in rule.template.rpartition("}")[2]):
        fields = rule.match(verb, path)
        if fields is not None:
            return rule, fields
    return None
