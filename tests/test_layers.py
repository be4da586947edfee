"""The layers of the package: what may import what, and that nothing is loaded that is not used."""

import ast
from importlib.util import resolve_name
from pathlib import Path

import pytest

import langgraph.checkpoint.dynamodb as package
from tests.support.loaded import loaded_by

PACKAGE = "langgraph.checkpoint.dynamodb"
FOLDER = Path(package.__file__).parent
# From the top down: each may import from those after it, and from itself.
LAYERS = (
    "__main__",
    "__init__",
    "cli",
    "view",
    "gateway",
    "migrate",
    "server",
    "config",
    "http",
    "calls",
    "observe",
    "tenants",
    "saver",
    "base_saver",
    "locks",
    "_operations",
    "_runtime",
    "protocol",
    "_format",
    "errors",
    "version",
)
# What the service and its clients share: the functions that describe calls, and what these need.
CALLS = {"call", "serving", "thread_calls", "memory_calls", "node_calls", "opaque", "problems"}
MODULES = sorted(FOLDER.rglob("*.py"))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# What is beside the checkpoint package uses its core, and neither the saver nor what is above it.
BESIDE = {name: FOLDER.parents[1] / name / "dynamodb" for name in ("store", "cache")}

BESIDE_MODULES = [path for folder in BESIDE.values() for path in sorted(folder.rglob("*.py"))]


def _layer(parts: tuple[str, ...]) -> int:
    if parts[:1] == ("gateway",) and len(parts) > 1 and parts[1].removesuffix(".py") in CALLS:
        return LAYERS.index("calls")
    return LAYERS.index(parts[0].removesuffix(".py") if parts else "__init__")


def _source(path: Path, node: ast.ImportFrom) -> str:
    """Return the full name of the module that a statement imports from."""
    if not node.level:
        return str(node.module)
    room = path.relative_to(FOLDER.parents[2]).parent
    return resolve_name("." * node.level + (node.module or ""), ".".join(room.parts))


@pytest.mark.parametrize(
    "path", MODULES + BESIDE_MODULES, ids=lambda path: str(path.relative_to(FOLDER.parents[1]))
)
def test_imports_within_a_package_are_relative(path: Path) -> None:
    own = ".".join(path.relative_to(FOLDER.parents[2]).parts[:3])
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    assert not [node.module for node in nodes if not node.level and (node.module or "").startswith(own)]


def _imports(path: Path) -> set[tuple[str, ...]]:
    """Return the parts of every module of the package that a file imports, or imports from."""
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{_source(path, node)}.{name}" for name in names]
        found |= {tuple(name.split(".")[3:]) for name in names if name.startswith(f"{PACKAGE}.")}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_imports_go_downwards_only(path: Path) -> None:
    own = _layer(path.relative_to(FOLDER).parts)
    upwards = {".".join(parts) for parts in _imports(path) if _layer(parts) < own}
    assert not upwards


def test_the_core_knows_neither_store_nor_cache() -> None:
    # The packages above the saver may.
    core = [path for path in MODULES if _layer(path.relative_to(FOLDER).parts) >= LAYERS.index("saver")]
    assert core
    found = {
        path.name for path in core for name in BESIDE if f"langgraph.{name}.dynamodb" in path.read_text()
    }
    assert not found


@pytest.mark.parametrize("name", BESIDE)
def test_store_and_cache_use_the_core_only(name: str) -> None:
    modules = sorted(BESIDE[name].rglob("*.py"))
    lowest = LAYERS.index("_operations")
    assert modules
    assert not {".".join(parts) for path in modules for parts in _imports(path) if _layer(parts) < lowest}
    other = next(each for each in BESIDE if each != name)
    assert not [path.name for path in modules if f"langgraph.{other}.dynamodb" in path.read_text()]
    assert not (BESIDE[name].parent / "__init__.py").exists()


def _modules(root: Path) -> dict[str, Path]:
    """Return the files under a folder of the distribution by the names of their modules."""
    parts = FOLDER.parents[2]
    return {
        ".".join(path.relative_to(parts).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(root.rglob("*.py"))
    }


def _imported(path: Path, modules: dict[str, Path]) -> set[str]:
    """Return which modules a file imports, for types alone, too, but not within a function."""
    tree = ast.parse(path.read_text())
    within = {id(node) for each in ast.walk(tree) if isinstance(each, _FUNCTIONS) for node in ast.walk(each)}
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in within:
            source = _source(path, node)
            names = {f"{source}.{name.name}" for name in node.names}
            found |= names if names <= modules.keys() else {*names, source}
        if isinstance(node, ast.Import) and id(node) not in within:
            found |= {name.name for name in node.names}
    return found & modules.keys()


def _circle(graph: dict[str, set[str]]) -> list[str]:
    """Return modules that import each other in a circle; an empty list if there are none."""
    left = set(graph)
    # What imports none of the others, or is imported by none of them, is in no circle.
    while free := {
        name for name in left if not graph[name] & left or not any(name in graph[each] for each in left)
    }:
        left -= free
    return sorted(left)


@pytest.mark.parametrize("root", [FOLDER, *BESIDE.values()], ids=["checkpoint", *BESIDE])
def test_no_modules_import_each_other_in_a_circle(root: Path) -> None:
    modules = _modules(root)
    graph = {name: _imported(path, modules) - {name} for name, path in modules.items()}
    assert any(graph.values())
    assert _circle(graph) == []


def test_the_store_loads_numpy_only_for_vectors() -> None:
    assert "numpy" not in loaded_by(
        "from langgraph.store.dynamodb import DynamoDBStore; DynamoDBStore('memories')"
    )


def test_importing_the_saver_loads_no_package_above_it() -> None:
    langgraphs = (
        "langgraph.checkpoint.base, langgraph.checkpoint.serde.encrypted, langchain_core.runnables.config"
    )
    ours = loaded_by(f"from {PACKAGE} import DynamoDBSaver") - loaded_by(f"import {langgraphs}")
    assert "langgraph.checkpoint.dynamodb.saver" in ours
    packages = LAYERS[LAYERS.index("cli") : LAYERS.index("saver")]
    assert not {name for name in ours if name.startswith(tuple(f"{PACKAGE}.{name}" for name in packages))}
    assert not {
        name
        for name in ours
        if name.split(".")[0] in ("pydantic", "yaml", "typer", "rich", "psycopg", "sqlite3")
    }


def test_what_is_above_the_saver_is_loaded_when_it_is_asked_for() -> None:
    configure = "CheckpointerConfig(type='dynamodb', config={'table_name': 'threads'})"
    loaded = loaded_by(f"from langgraph.checkpoint.dynamodb import CheckpointerConfig; {configure}")
    assert f"{PACKAGE}.config.dynamodb" in loaded
    # A configuration is read in no time: its saver loads the client library when it is used.
    assert not {"boto3", "botocore"} & loaded
    assert not [name for name in package.__all__ if not hasattr(package, name)]
    assert not hasattr(package, "create_saver")
