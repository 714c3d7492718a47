"""Imports point down only, between rooms and inside of them; few doors, and no private name of Keras."""

import ast
import importlib
import pathlib

import pytest

import valen_tf

PACKAGE = pathlib.Path(valen_tf.__file__).parent
# From the ground up. A line is a floor: a module may import those of lower floors. A room that is named
# as a whole has floors of its own further up this list, or modules that do not import each other upwards.
FLOORS = """
    checks
    model.replicas model.gammas
    dirichlet losses metrics
    data.features data.locks model.gate
    data.files
    data.harmless
    data.batches
    data.inputs
    data.answers data.columns
    data.annotation_tools
    data.coverage
    data.pictures
    data.preparation data.readers
    data.tabular
    data.dataset
    data.corrections
    data
    data.checking
    graph.neighbors graph.reconstruction graph.convolution
    graph
    methods
    networks
    model
    model.keras_hooks model.memory model.front model.weighting
    callbacks
    data.candidates data.sets.registry
    data.clean_networks
    data.corruption
    data.sets.digits data.sets.human data.sets.images data.sets.realworld data.sets.text data.sets.uci
    data.sets
    data.sets.builders data.cards
    export.requests
    export.signatures
    export.lite export.folders
    export
    model.base model.estimator
    model.network_estimator model.stand_ins
    methods.*
    methods.rc methods.valen_authors methods.valen_paper
    reports.opinions reports.agreement reports.uncertainty reports.curves
    reports.evidence
    reports.frame
    reports.page reports.asking
    reports
    runs.config
    runs.keys runs.predictions runs.answered
    runs.beforehand
    runs.sources
    runs.building
    runs.reporting
    runs.watching
    runs.running
    runs.serving
    runs
    tuning.spaces
    tuning.trials tuning.hypermodel tuning.oracles
    tuning.searching tuning.comparing
    tuning
    papers
    papers.valen2021
    cli.terminal cli.completion
    cli.data_sets cli.label_report
    cli.main
    cli
    cli.__main__
"""
FLOOR_OF = {
    module: floor
    for floor, line in enumerate(FLOORS.strip().splitlines())
    for module in line.split()
}


def name_of(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in PACKAGE.rglob("*.py")}


def floor_of(module):
    """The floor of a module, else that of all in its room (`room.*`), else that of its room."""
    while module not in FLOOR_OF:
        assert "." in module, f"{module} has no floor: give it one above"
        room = module.rpartition(".")[0]
        module = f"{room}.*" if f"{room}.*" in FLOOR_OF and module != room else room
    return FLOOR_OF[module]


class _WithoutHints(ast.NodeTransformer):
    """Takes away what is imported for type hints alone."""

    def visit_If(self, node):
        return None if getattr(node.test, "id", None) == "TYPE_CHECKING" else node


def imports(path):
    """The modules of this package that a file imports, also `import valen_tf as vt; vt.something`."""
    tree = _WithoutHints().visit(ast.parse(path.read_text()))
    whole = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "valen_tf":
            module = node.module.removeprefix("valen_tf").removeprefix(".")
            for alias in node.names:
                full = f"{module}.{alias.name}".strip(".")
                yield full if full in MODULES else module
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "valen_tf":
                    whole.add(alias.asname or alias.name)
                elif alias.name.startswith("valen_tf."):
                    yield alias.name.removeprefix("valen_tf.")
        elif isinstance(node, ast.Attribute) and getattr(node.value, "id", None) in whole:
            if node.attr in MODULES or node.attr in valen_tf._ELSEWHERE:
                yield valen_tf._ELSEWHERE.get(node.attr, node.attr)
            elif node.attr in valen_tf._OBJECTS:
                yield valen_tf._OBJECTS[node.attr]


@pytest.mark.parametrize("module", sorted(set(MODULES) - {""}))
def test_imports_point_down(module):
    for other in imports(MODULES[module]):
        if (
            not other
            or other == module
            or (module.startswith("papers.") and other.startswith("papers."))
        ):
            continue
        assert floor_of(other) < floor_of(module), (
            f"{module} imports {other}, which is not below it"
        )


def test_the_order_sees_a_whole_import(tmp_path):
    script = tmp_path / "low.py"
    script.write_text("import valen_tf as vt\nvt.tuning.search\nvt.Valen\nvt.datasets.load\n")
    assert sorted(imports(script)) == ["data.sets", "methods", "tuning"]


def test_editors_know_every_name():
    nodes = list(ast.walk(ast.parse((PACKAGE / "__init__.pyi").read_text())))
    known = {node.asname for node in nodes if isinstance(node, ast.alias)}
    known |= {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    private = {"_sets", "_NetworkClassifier"}
    assert known - private == set(valen_tf.__all__)


@pytest.mark.parametrize("former", sorted(valen_tf._FORMER))
def test_modules_are_found_under_their_former_names(former):
    now = importlib.import_module(f"valen_tf.{valen_tf._FORMER[former]}")
    assert importlib.import_module(f"valen_tf.{former}") is now
    room, _, name = former.partition(".")
    assert getattr(importlib.import_module(f"valen_tf.{room}"), name) is now


def test_there_are_few_doors():
    doors = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert len(doors - {"__init__", "__pycache__"}) <= 16


def test_no_two_rooms_share_a_name():
    leaves = [name.rpartition(".")[2] for name in MODULES if name]
    assert sorted({leaf for leaf in leaves if leaves.count(leaf) > 1}) == []


def test_only_one_file_uses_private_names_of_keras():
    private = ("_make_function", "_maybe_symbolic_build", "_get_metrics_result_or_logs")
    private += ("_distribute_strategy", "_initial_epoch", "_loss_tracker", "_flatten_layers")
    private += ("_all_reduce_sum_gradients", "_inputs_struct", "_flatten_metrics_in_order")
    private += ("_compile_metrics",)
    hooks = MODULES["model.keras_hooks"]
    for path in PACKAGE.rglob("*.py"):
        if path != hooks:
            used = {
                node.attr for node in ast.walk(ast.parse(path.read_text())) if hasattr(node, "attr")
            }
            assert not used & set(private), path
    assert all(name in hooks.read_text() for name in private)


def test_a_training_step_is_read_in_a_few_files():
    import walk  # of benchmarks/

    step = walk.step()
    files, changes = walk.LIMITS["step"]
    assert len(step.files) <= files and step.changes <= changes, step.stops
