"""The program that executes one request: SQLGlot translates SQL, DuckDB runs it on Parquet files.

The program reads a request as a line of JSON and writes the answer as a line of JSON. In between, a
query requests the files of its tables, and reports the columns that it will read.
"""

from __future__ import annotations

import base64
import datetime
import importlib
import json
import re
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

duckdb: Any = importlib.import_module("duckdb")
sqlglot: Any = importlib.import_module("sqlglot")
exp: Any = importlib.import_module("sqlglot.expressions")
optimizer: Any = importlib.import_module("sqlglot.optimizer.qualify")
projections: Any = importlib.import_module("sqlglot.optimizer.pushdown_projections")
scopes: Any = importlib.import_module("sqlglot.optimizer.scope")

Field = Mapping[str, Any]
#: Column type in REST -> DuckDB type, and bytes of a value (0: two bytes plus the text's bytes),
#: from https://cloud.google.com/bigquery/pricing#data.
TYPES: Final = {
    "INTEGER": ("BIGINT", 8), "FLOAT": ("DOUBLE", 8), "BOOLEAN": ("BOOLEAN", 1),
    "STRING": ("VARCHAR", 0), "BYTES": ("BLOB", 0), "DATE": ("DATE", 8), "TIME": ("TIME", 8),
    "DATETIME": ("TIMESTAMP", 8), "TIMESTAMP": ("TIMESTAMPTZ", 8),
    "NUMERIC": ("DECIMAL(38,9)", 16), "BIGNUMERIC": ("DECIMAL(38,19)", 32), "JSON": ("JSON", 0),
}  # fmt: skip
_ALIASES: Final = {"INT64": "INTEGER", "FLOAT64": "FLOAT", "BOOL": "BOOLEAN", "STRUCT": "RECORD"}
#: Id of a DuckDB type -> BigQuery type of a result column.
_RESULTS: Final = {
    "date": "DATE", "time": "TIME", "timestamp": "DATETIME",
    "timestamp with time zone": "TIMESTAMP", "boolean": "BOOLEAN", "varchar": "STRING",
    "blob": "BYTES", "double": "FLOAT", "float": "FLOAT", "json": "JSON",
    "null": "INTEGER", "uuid": "STRING",
}  # fmt: skip
#: DuckDB functions that return properties of this machine, which BigQuery does not have.
_OF_MACHINE: Final = re.compile(r"(current_setting|getenv|(duckdb|pg)_\w+)$", re.IGNORECASE)


class RefusedError(Exception):
    """A rejected request with one of BigQuery's error reasons."""

    def __init__(self, message: str, reason: str = "invalidQuery") -> None:
        self.reason = reason
        super().__init__(message)


def query(request: Mapping[str, Any]) -> dict[str, Any]:
    """Run a query, write the result to a file, and return the schema; ``dryRun`` writes no file."""
    tree = _parsed(request["sql"])
    for node in tree.find_all(exp.Anonymous):
        if _OF_MACHINE.match(node.name):
            raise RefusedError(f"Function not found: {node.name}")
    _fill_in(tree, {parameter["name"].lower(): parameter for parameter in request["parameters"]})
    _widen(tree)
    named = list(_tables(tree, request["project"], request.get("dataset")))
    nothing = _database(_paths([]))
    references = [
        {**reference, "asOf": _as_of(nothing, node.args.get("version"))}
        for node, reference in named
    ]
    schema: dict[str, dict[str, str]] = {}
    tables = _request({"tables": references})
    # Functions of the query can read only these files.
    files = [file for table in tables for file in table["files"]]
    if (output := Path(request["output"])).name:
        files += [str(output), str(output.with_name(f"tmp_{output.name}"))]  # COPY writes both
    database = _database(_paths(files))
    names, prefix = {identifier.name.lower() for identifier in tree.find_all(exp.Identifier)}, "t"
    while any(name.startswith(prefix) for name in names):
        prefix += "_"
    views = [f"{prefix}{i}" for i in range(len(named))]
    for view, table in zip(views, tables, strict=True):
        database.execute(f"CREATE TEMP VIEW {view} AS SELECT * FROM {_source(table)}")
        schema[view] = {parameter["name"]: sql_type(parameter) for parameter in table["schema"]}
    for view, (node, _) in zip(views, named, strict=True):
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name))
        pivots = {key: node.args.get(key) for key in ("joins", "pivots", "laterals", "sample")}
        node.replace(exp.Table(this=exp.to_identifier(view), alias=alias, **pivots))
    _name_columns(tree)
    sql = tree.sql(dialect="duckdb")
    fields = _fields_of(database, sql)
    read = _columns_read(tree, schema)
    _request({"read": [sorted(read.get(view, ())) for view in views]})
    if request["dryRun"]:
        return {"schema": fields}
    return _written(database, sql, fields, request)


def load(request: Mapping[str, Any]) -> dict[str, Any]:
    """Convert CSV, JSON or Parquet files to one file of a table."""
    database, config = _database(_folder(request)), request["config"]
    fields = [_canonical(column) for column in request["schema"]]
    files = f"[{', '.join(map(_text, request['files']))}]"
    kind = config.get("sourceFormat") or "CSV"
    columns = "{" + ", ".join(f"{_text(f['name'])}: {_text(sql_type(f))}" for f in fields) + "}"
    if kind == "PARQUET":
        source = f"read_parquet({files}, union_by_name = true)"
    elif kind == "NEWLINE_DELIMITED_JSON":
        columns_option = f", columns = {columns}" if fields else ""
        source = f"read_json({files}, format = 'newline_delimited'{columns_option})"
    elif kind == "CSV":
        options = f"delim = {_text(config.get('fieldDelimiter') or ',')}, "
        options += f"nullstr = {_text(config.get('nullMarker') or '')}, "
        skipped = int(config.get("skipLeadingRows") or 0)
        options += (
            f"columns = {columns}, header = false, skip = {skipped}, auto_detect = false, "
            f"quote = '\"', escape = '\"'"
            if fields
            else f"header = true, skip = {max(skipped - 1, 0)}"
        )
        source = f"read_csv({files}, {options})"
    else:
        raise RefusedError(f"the local cloud cannot load files of format {kind}", "invalid")
    try:
        sql = f"SELECT * FROM {source}"
        return _written(database, sql, fields or _fields_of(database, sql), request)
    except duckdb.Error as error:
        text = f"Error while reading data, error message: {_words(error)}"
        raise RefusedError(text, "invalid") from None


def export(request: Mapping[str, Any]) -> dict[str, Any]:
    """Write the rows of a table to a file, which the caller uploads to a bucket."""
    config, kind = request["config"], request["config"].get("destinationFormat") or "CSV"
    compression = (config.get("compression") or "NONE").lower()
    options = f"FORMAT parquet, COMPRESSION {compression.replace('none', 'uncompressed')}"
    if kind == "CSV":
        header = config.get("printHeader") is not False
        delimiter = _text(config.get("fieldDelimiter") or ",")
        options = f"FORMAT csv, HEADER {header}, DELIMITER {delimiter}, COMPRESSION {compression}"
    elif kind != "PARQUET":
        raise RefusedError(f"the local cloud cannot export to format {kind}", "invalid")
    sql = f"COPY (SELECT * FROM {_source(request['table'])}) TO {_text(request['output'])}"
    _database(_folder(request)).execute(f"{sql} ({options})")
    return {}


def read(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return rows of a table in the form of REST."""
    table, offset, limit = request["table"], int(request["offset"]), int(request["limit"])
    sql = f"SELECT * FROM {_source(table)} LIMIT {limit} OFFSET {offset}"
    rows = _database(_folder(request)).execute(sql).fetchall()
    exact = bool(request["exactTimes"])
    return {
        "rows": [
            {
                "f": [
                    {"v": _rest(value, field, exact=exact)}
                    for value, field in zip(row, table["schema"], strict=True)
                ]
            }
            for row in rows
        ]
    }


def _parsed(sql: str) -> Any:
    try:
        parts = sqlglot.parse(sql, dialect="bigquery")
    except sqlglot.errors.SqlglotError as error:
        raise RefusedError(f"Syntax error: {_words(error)}") from None
    # Between two semicolons, SQLGlot returns None, or a Semicolon with a comment.
    statements = [part for part in parts if not isinstance(part, exp.Semicolon | None)]
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        text = "the local cloud runs one query at a time; scripts, DDL and DML are not supported"
        raise RefusedError(text)
    return statements[0]


def _fill_in(tree: Any, parameters: Mapping[str, Any]) -> None:
    if tree.find(exp.Placeholder):
        raise RefusedError("the local cloud supports only named query parameters")
    for node in list(tree.find_all(exp.Parameter)):
        parameter = parameters.get(node.name.lower())
        if parameter is None:
            raise RefusedError(f"Query parameter '{node.name}' not found")
        kind = parameter["parameterType"]["type"].upper()
        kind = _ALIASES.get(kind, kind)
        if kind not in TYPES:
            raise RefusedError(f"the local cloud does not support query parameters of type {kind}")
        value = parameter.get("parameterValue", {}).get("value")
        literal = exp.null() if value is None else exp.Literal.string(str(value))
        node.replace(exp.cast(literal, exp.DataType.build(TYPES[kind][0], dialect="duckdb")))


def _widen(tree: Any) -> None:
    # DuckDB's DECIMAL has three decimal places by default, unlike BigQuery's NUMERIC.
    kinds = {"DECIMAL": "NUMERIC", "BIGDECIMAL": "BIGNUMERIC"}
    for node in list(tree.find_all(exp.DataType)):
        if (kind := kinds.get(node.this.value)) and not node.expressions:
            node.replace(exp.DataType.build(TYPES[kind][0], dialect="duckdb"))


def _tables(tree: Any, project: str, dataset: str | None) -> Iterator[tuple[Any, dict[str, str]]]:
    own = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    for node in tree.find_all(exp.Lateral, exp.Table):
        is_table = isinstance(node, exp.Table)
        if not isinstance(node.this, exp.Identifier if is_table else exp.Subquery | exp.Unnest):
            text = f"the local cloud does not support table functions: {node.sql('bigquery')}"
            raise RefusedError(text)
    for node in list(tree.find_all(exp.Table)):
        parts = [part.name for part in node.parts]
        if len(parts) == 1 and parts[0].lower() in own:
            continue
        if len(parts) == 1 and not dataset:
            text = f'Table "{parts[0]}" must be qualified with a dataset (e.g. dataset.table).'
            raise RefusedError(text, "invalid")
        if parts[-1].endswith("*") or "INFORMATION_SCHEMA" in node.sql().upper():
            text = "the local cloud does not support wildcard tables or INFORMATION_SCHEMA"
            raise RefusedError(f"{text}: {parts}")
        names = [project, dataset or ""][: max(0, 3 - len(parts))] + parts
        yield node, dict(zip(("projectId", "datasetId", "tableId"), names, strict=True))


def _as_of(database: Any, version: Any) -> int | None:
    if version is None:
        return None
    sql = f"SELECT epoch_ms(CAST({version.expression.sql(dialect='duckdb')} AS TIMESTAMPTZ))"
    if (moment := database.execute(sql).fetchone()[0]) is None:
        raise RefusedError("the time of FOR SYSTEM_TIME AS OF is NULL")
    return moment


def _request(message: Mapping[str, Any]) -> Any:
    print(json.dumps(message), flush=True)
    return json.loads(sys.stdin.readline())


def _columns_read(tree: Any, schema: Mapping[str, Any]) -> dict[str, set[str]]:
    # BigQuery bills the bytes of these columns.
    known = {
        name: {column.lower(): column for column in table_columns}
        for name, table_columns in schema.items()
    }
    typed = {name: dict.fromkeys(table_columns, "text") for name, table_columns in known.items()}
    options = {"dialect": "bigquery", "validate_qualify_columns": False}
    try:
        whole = optimizer.qualify(tree.copy(), schema=typed, **options)
        whole = projections.pushdown_projections(whole)
        columns_by_table: dict[str, set[str]] = {}
        for scope in scopes.traverse_scope(whole):
            for alias, (_, source) in scope.selected_sources.items():
                if isinstance(source, exp.Table) and source.name in known:
                    names = {column.name.lower() for column in scope.source_columns(alias)}
                    columns = known[source.name]
                    columns_by_table.setdefault(source.name, set()).update(
                        columns[name] for name in names if name in columns
                    )
        return columns_by_table
    except sqlglot.errors.SqlglotError:  # an unresolved query may read all columns
        return {name: set(table_columns) for name, table_columns in schema.items()}


def _name_columns(tree: Any) -> None:
    # BigQuery names unnamed result columns f0_, f1_, …
    select = tree
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    unnamed = 0
    for expression in list(select.expressions) if isinstance(select, exp.Select) else []:
        if not expression.is_star and not isinstance(expression, exp.Alias | exp.Column | exp.Dot):
            expression.replace(exp.alias_(expression.copy(), f"f{unnamed}_"))
            unnamed += 1


def _written(
    database: Any, sql: str, fields: list[Any], request: Mapping[str, Any]
) -> dict[str, Any]:
    output = _text(request["output"])
    columns = ", ".join(
        f"CAST({_quoted(column['name'])} AS {sql_type(column)}) AS {_quoted(column['name'])}"
        for column in fields
    )
    database.execute(f"COPY (SELECT {columns} FROM ({sql})) TO {output} (COMPRESSION zstd)")
    sizes = "".join(f", coalesce(sum({_size(_quoted(f['name']), f)}), 0)::BIGINT" for f in fields)
    rows, *sums = database.execute(f"SELECT count(*){sizes} FROM read_parquet({output})").fetchone()
    names = [field["name"] for field in fields]
    return {"schema": fields, "rows": rows, "bytes": dict(zip(names, sums, strict=True))}


def _fields_of(database: Any, sql: str) -> list[dict[str, Any]]:
    relation = database.sql(sql)
    names = [name.lower() for name in relation.columns]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise RefusedError(f"Duplicate column names in the result are not supported: {twice}")
    return [_field(name, kind) for name, kind in zip(relation.columns, relation.types, strict=True)]


def _field(name: str, kind: Any) -> dict[str, Any]:
    if kind.id == "list":
        return {**_field(name, dict(kind.children)["child"]), "mode": "REPEATED"}
    field: dict[str, Any] = {"name": name, "mode": "NULLABLE"}
    if kind.id == "struct":
        return {**field, "type": "RECORD", "fields": [_field(*child) for child in kind.children]}
    if kind.id == "decimal":
        wide = dict(kind.children)["scale"] > 9
        return {**field, "type": "BIGNUMERIC" if wide else "NUMERIC"}
    number = "INTEGER" if kind.id.endswith("int") or kind.id == "integer" else None
    if (type_name := number or _RESULTS.get(kind.id)) is None:
        text = f"the local cloud does not support results of type {kind} (column {name})"
        raise RefusedError(text)
    return {**field, "type": type_name}


def _canonical(field: Field) -> dict[str, Any]:
    kind = field["type"].upper()
    canonical = {"mode": "NULLABLE", **field, "type": _ALIASES.get(kind, kind)}
    if "fields" in field:
        canonical["fields"] = [_canonical(column) for column in field["fields"]]
    return canonical


def sql_type(field: Field) -> str:
    """Return a column's type in DuckDB. Raises RefusedError for an unsupported type."""
    kind = field["type"]
    if kind == "RECORD":
        inner = ", ".join(f"{_quoted(f['name'])} {sql_type(f)}" for f in field["fields"])
        type_name = f"STRUCT({inner})"
    elif kind in TYPES:
        type_name = TYPES[kind][0]
    else:
        raise RefusedError(f"the local cloud does not support columns of type {kind}", "invalid")
    return f"{type_name}[]" if field.get("mode") == "REPEATED" else type_name


def _size(value: str, field: Field, depth: int = 0) -> str:
    if field.get("mode") == "REPEATED":
        one = _size(f"e{depth}", {**field, "mode": ""}, depth + 1)
        return f"coalesce(list_sum(list_transform({value}, lambda e{depth}: {one})), 0)"
    kind = field["type"]
    if kind == "RECORD":
        parts = (_size(f"{value}.{_quoted(f['name'])}", f, depth) for f in field["fields"])
        return f"({' + '.join(parts)})"
    size = str(TYPES[kind][1] or f"2 + octet_length(CAST({value} AS BLOB))")
    if kind in ("STRING", "JSON"):
        size = f"2 + strlen({value})"
    return f"(CASE WHEN {value} IS NULL THEN 0 ELSE {size} END)"


def _rest(value: Any, field: Field, *, exact: bool) -> Any:
    if field.get("mode") == "REPEATED":
        one = {**field, "mode": ""}
        return [{"v": _rest(element, one, exact=exact)} for element in value or ()]
    kind = field["type"]
    if value is None:
        return None
    if kind == "RECORD":
        return {"f": [{"v": _rest(value[f["name"]], f, exact=exact)} for f in field["fields"]]}
    if kind == "BOOLEAN":
        return str(value).lower()
    if kind == "BYTES":
        return base64.b64encode(value).decode()
    if kind == "TIMESTAMP":
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        micros = (value - epoch) // datetime.timedelta(microseconds=1)
        return str(micros) if exact else repr(micros / 1e6)
    return value.isoformat() if kind in ("DATE", "TIME", "DATETIME") else str(value)


def _source(table: Mapping[str, Any]) -> str:
    if table["files"]:
        return f"read_parquet([{', '.join(map(_text, table['files']))}], union_by_name = true)"
    columns = ", ".join(
        f"CAST(NULL AS {sql_type(column)}) AS {_quoted(column['name'])}"
        for column in table["schema"]
    )
    return f"(SELECT {columns or '1'} WHERE false)"


def _database(allowed: str) -> Any:
    database = duckdb.connect()
    for setting in (
        "TimeZone = 'UTC'",
        *("memory_limit = '1GiB'", "threads = 2", "temp_directory = ''"),
        allowed,
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        database.execute(f"SET {setting}")
    return database


def _folder(request: Mapping[str, Any]) -> str:
    # Only for SQL of this module.
    return f"allowed_directories = [{_text(request['folder'])}]"


def _paths(files: list[str]) -> str:
    # For SQL of users.
    return f"allowed_paths = [{', '.join(map(_text, files))}]"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _words(error: Exception) -> str:
    # SQLGlot underlines the position of an error with terminal codes.
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines()]
    return " ".join(line for line in lines[:3] if line) or type(error).__name__


OPERATIONS: Final[Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    "query": query,
    "load": load,
    "export": export,
    "read": read,
}


def main() -> None:
    """Read one request from stdin, execute the request, and write the answer to stdout."""
    request = json.loads(sys.stdin.readline())
    try:
        answer = {"done": OPERATIONS[request["operation"]](request)}
    except RefusedError as error:
        answer = {"error": {"reason": error.reason, "message": str(error)}}
    except (MemoryError, duckdb.OutOfMemoryException):
        text = "Resources exceeded during query execution: the local cloud limits a query to"
        answer = {"error": {"reason": "resourcesExceeded", "message": f"{text} 1 GiB of memory."}}
    except duckdb.Error as error:
        answer = {"error": {"reason": "invalidQuery", "message": _words(error)}}
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    # DuckDB's own memory limit does not count values in transit.
    if sys.platform.startswith("linux"):  # other kernels do not apply this limit
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    main()
