"""The onnx package's own test models: all are read, all operators have a class, outputs have the shape they should."""

import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest

from gnnperf.graph import OpClass, read_graph, to_arrays
from gnnperf.graph.costs.describe import CLASSES

# Cases whose shapes stand in an input that is fed when they run, or that the file itself leaves open.
DECIDED_BY_AN_INPUT = ("affine_grid", "blackmanwindow", "center_crop_pad", "hammingwindow", "hannwindow", "reduce_l",
                       "range_", "loop1", "string_split_empty", "sequence_map")  # fmt: skip
EMPTY_INPUT = ("regex_full_match_empty", "tril_zero", "triu_zero")  # a 0 in an input shape is taken for "free"


@pytest.fixture(scope="module")
def cases():
    from onnx.backend.test.case.node import collect_testcases

    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        return collect_testcases(None)


def test_operator_cases_are_read_and_have_the_shapes_of_their_results(cases):
    assert len(cases) > 1500
    operators, compared, unresolved, wrong = set(), 0, [], []
    for case in cases:
        graph = read_graph(case.model)
        arrays = to_arrays(graph)
        assert (arrays.node >= 0).all() and np.isfinite(arrays.node).all(), case.name
        operators |= {node.op_type for node in graph.nodes}
        if graph.unknown_operators or not all(node.resolved for node in graph.nodes):
            unresolved.append(case.name)
            continue
        for result, tensor in zip(case.data_sets[0][1], graph.outputs, strict=True):
            if isinstance(result, np.ndarray | np.generic):
                compared += 1
                if tensor.shape != result.shape and not any("depends on data" in text for text in graph.warnings):
                    wrong.append((case.name, tensor.shape, result.shape))
    assert len(operators) > 180 and compared > 1700
    assert [name for name in unresolved if not any(part in name for part in DECIDED_BY_AN_INPUT)] == []
    expected = (*DECIDED_BY_AN_INPUT, *EMPTY_INPUT)
    assert [entry for entry in wrong if not any(part in entry[0] for part in expected)] == []


def test_every_model_file_of_the_package_is_read():
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data"
    paths = sorted(folder.rglob("*.onnx"))
    assert len(paths) > 100
    for path in paths:
        graph = read_graph(path)
        assert all(node.resolved for node in graph.nodes), path
        assert set(graph.unknown_operators) <= {"ai.onnx.preview.training.Gradient"}, path


def test_every_version_of_every_operator_has_a_class():
    for schema in onnx.defs.get_all_schemas_with_history():
        name = schema.name if schema.domain in ("", "ai.onnx") else f"{schema.domain}.{schema.name}"
        assert CLASSES.get(name, OpClass.OTHER) != OpClass.OTHER or schema.name == "Gradient", name
