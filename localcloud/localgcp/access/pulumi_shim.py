"""``pulumi`` of the local shell: runs the real ``pulumi`` with a copy of the committed stack file.

The committed file may name a cloud key, and the engine writes ``encryptionsalt`` into the file. So
commands that load a stack's configuration use the copy ``stacks/PROJECT/Pulumi.STACK.yaml`` below
``$VT_LOCAL_HOME``, with the encryption settings of the local backend. A missing stack is created.
Commands that load a program run in a private network (``localgcp.access.engine_network``), unless
VT_LOCAL_NETWORK is ``host`` or ``--client`` (Automation API) is set. The script imports few
modules, because it runs at each ``pulumi`` command.
"""

import os
import re
import sys

COMMANDS = frozenset(
    {"preview", "pre", "up", "update", "refresh", "destroy", "down", "dn", "import", "watch"}
)
_VALUE_FLAGS = frozenset(
    {"-C", "--cwd", "-s", "--stack", "--color", "-v", "--verbose", "--profiling", "--tracing"}
    | {"--memprofilerate", "--otel-traces"}
)
_LONG_FLAGS = {"-s": "--stack", "-C": "--cwd", "-h": "--help"}
_PASSPHRASE = "PULUMI_CONFIG_PASSPHRASE"
#: A loopback address in a variable or an argument, such as one of the local cloud or a proxy.
_LOOPBACK = re.compile(r"(?:\w+://)?(?:127\.0\.0\.1|localhost):(\d{1,5})\b")
_ENCRYPTION = re.compile(r"(secretsprovider|encryptedkey|encryptionsalt)\s*:")
_SALT = re.compile(r"^encryptionsalt\s*:\s*([\w:+/=]+)", re.MULTILINE)
_PROJECT = re.compile(r"^\s+[\"']?gcp:project[\"']?\s*:\s*[\"']?([\w-]+)", re.MULTILINE)


class Request:
    """The parsed command line; None for absent options."""

    def __init__(self, args: list[str]) -> None:
        self.command: str | None = None
        self.position = -1
        flags: dict[str, str] = {}
        index = 0
        while index < len(args) and args[index] != "--":
            arg = args[index]
            flag, equals, value = arg.partition("=")
            if not arg.startswith("-"):
                if self.command is None:
                    self.command, self.position = arg, index
            else:
                if flag in _VALUE_FLAGS and not equals:
                    index += 1
                    value = args[index] if index < len(args) else ""
                elif re.match(r"-[sC].", arg) and not equals:
                    flag, value = arg[:2], arg[2:]
                flags[_LONG_FLAGS.get(flag, flag)] = value
            index += 1
        self.stack, self.cwd = flags.get("--stack"), flags.get("--cwd")
        self.has_config_file, self.has_client = "--config-file" in flags, "--client" in flags
        self.asks_help = "--help" in flags


def real_pulumi(own: str, path: str) -> str | None:
    """Return the first ``pulumi`` on PATH that is not in the shim's folder ``own``."""
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder, "pulumi")
        is_own = os.path.realpath(folder) == os.path.realpath(own)
        if folder and not is_own and os.access(candidate, os.X_OK):
            return candidate
    return None


def find_project(cwd: str) -> tuple[str, str] | None:
    """Return folder and project name of the nearest Pulumi.yaml in ``cwd`` or above it."""
    folder = os.path.abspath(cwd)
    while True:
        try:
            with open(os.path.join(folder, "Pulumi.yaml"), encoding="utf-8") as file:
                name = re.search(r"^name\s*:\s*[\"']?([\w.-]+)", file.read(), re.MULTILINE)
                return (folder, name[1]) if name else None
        except FileNotFoundError:
            if os.path.dirname(folder) == folder:
                return None
            folder = os.path.dirname(folder)


def without_encryption(text: str) -> str:
    """Return the stack file's text without its top-level encryption settings."""
    kept: list[str] = []
    dropping = False
    for line in text.splitlines():
        if not line.startswith((" ", "\t")) and line.strip():
            dropping = bool(_ENCRYPTION.match(line))
        if not dropping:
            kept.append(line)
    return "\n".join(kept) + "\n"


def own_salt(text: str) -> str | None:
    """Return the salt that the engine wrote into a local project's stack file; None otherwise."""
    salt, project = _SALT.search(text), _PROJECT.search(text)
    if not salt or not project:
        return None
    _find_package()
    from localgcp.inventory.resource_paths import is_local

    return salt[1] if is_local(project[1]) else None


def _find_package() -> None:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def salt_of(home: str, project: str, stack: str) -> str | None:
    """Return the salt of the local stack from its state; None if the stack does not exist."""
    import json

    state = os.path.join(home, "pulumi", ".pulumi", "stacks", project, f"{stack}.json")
    try:
        with open(state, encoding="utf-8") as file:
            latest = json.load(file)["checkpoint"]["latest"]
        return latest["secrets_providers"]["state"]["salt"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def make_stack(
    pulumi: str, folder: str, project: str, stack: str, env: "dict[str, str] | None" = None
) -> str:
    """Run ``pulumi stack init`` in ``folder``; return its stderr. Concurrent runs are safe."""
    import subprocess

    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "Pulumi.yaml"), "w", encoding="utf-8") as file:
        file.write(f"name: {project}\nruntime: python\n")
    done = subprocess.run(
        [pulumi, "-C", folder, "stack", "init", stack, "--no-select", "--non-interactive"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
        env=env,
    )
    return done.stderr.decode(errors="replace")


def selected_stack(pulumi: str, cwd: str) -> str | None:
    """Return the stack of commands without ``--stack``; None if no stack is selected."""
    import subprocess

    if named := os.environ.get("PULUMI_STACK"):
        return named
    shown = subprocess.run(
        [pulumi, "-C", cwd, "stack", "--show-name", "--non-interactive"],
        capture_output=True,
        text=True,
        check=False,
    )
    return shown.stdout.strip() or None if shown.returncode == 0 else None


def with_local_stack_file(args: list[str], pulumi: str, home: str) -> list[str]:
    """Add ``--config-file`` to the arguments of commands that load a stack's configuration."""
    request = Request(args)
    if request.command not in COMMANDS or request.has_config_file or request.asks_help:
        return args
    cwd = request.cwd or os.getcwd()
    project = find_project(cwd)
    stack = project and (request.stack or selected_stack(pulumi, cwd))
    if not project or not stack:
        return args
    stack = stack.rpartition("/")[2]
    committed = os.path.join(project[0], f"Pulumi.{stack}.yaml")
    if not os.path.isfile(committed):
        return args
    folder = os.path.join(home, "stacks", project[1])
    if (salt := salt_of(home, project[1], stack)) is None:
        stderr = make_stack(pulumi, folder, project[1], stack)
        if (salt := salt_of(home, project[1], stack)) is None:
            sys.stderr.write(stderr)  # the engine only reports that the stack does not exist
            return args
    target = os.path.join(folder, f"Pulumi.{stack}.yaml")
    os.makedirs(folder, exist_ok=True)
    with open(committed, encoding="utf-8") as file:
        text = file.read()
    salt = own_salt(text) or salt
    partial = f"{target}.{os.getpid()}"
    with open(partial, "w", encoding="utf-8") as file:
        file.write(f"encryptionsalt: {salt}\n{without_encryption(text)}")
    os.replace(partial, target)
    at = request.position + 1
    return [*args[:at], "--config-file", target, *args[at:]]


def enter_network(args: list[str]) -> None:
    """Enter a private network before commands that load a program, if the system supports it."""
    request = Request(args)
    if request.command not in COMMANDS or request.asks_help or request.has_client:
        return
    if os.environ.get("VT_LOCAL_NETWORK") == "host" or not sys.platform.startswith("linux"):
        return
    _find_package()
    from localgcp.access import engine_network

    values = [*os.environ.values(), *(arg.rpartition("=")[2] for arg in args)]
    match = (_LOOPBACK.match(value) for value in values)
    engine_network.enter({int(port[1]) for port in match if port and int(port[1]) < 1 << 16})


_CHANGE = "change-secrets-provider"
#: The command that restores the passphrase of a local stack.
PASSPHRASE_UNDO = f"""\
If an earlier change made the passphrase empty, run in `vt local shell`:
  printf 'local\\nlocal\\n' | {_PASSPHRASE}='' pulumi stack {_CHANGE} passphrase
If the passphrase is another text, write that text between the quotes of the variable."""
#: Error text about a new passphrase, with which later commands of ``vt`` could read no stack.
_KEPT_PASSPHRASE = f"""\
vt: `pulumi stack {_CHANGE}` would make this local stack unreadable: its passphrase stays "local".
Hint: keep the passphrase. {PASSPHRASE_UNDO}
"""


def changes_passphrase(args: list[str]) -> bool:
    """Return whether the arguments would change the passphrase of a local stack."""
    request = Request(args)
    is_change = request.command == "stack" and _CHANGE in args
    return is_change and not request.asks_help and os.environ.get(_PASSPHRASE) == "local"


def main() -> int:
    """Replace this process by the real pulumi; return 127 without pulumi, 1 if refused."""
    home = os.environ.get("VT_LOCAL_HOME")
    args = sys.argv[1:]
    own = os.path.join(home, "bin") if home else ""
    pulumi = real_pulumi(own, os.environ.get("PATH", os.defpath))
    if pulumi is None:
        print("vt: PATH has no pulumi. Hint: run `vt setup`.", file=sys.stderr)
        return 127
    if home and changes_passphrase(args):
        sys.stderr.write(_KEPT_PASSPHRASE)
        return 1
    if home:
        args = with_local_stack_file(args, pulumi, home)
        enter_network(args)
    os.execv(pulumi, [pulumi, *args])


if __name__ == "__main__":
    sys.exit(main())
