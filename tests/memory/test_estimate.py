"""Peak memory and its parts: what has to hold whatever the network, and figures that anyone can check by hand."""

import dataclasses

import pytest

from gnnperf import zoo
from gnnperf.conditions import Conditions, Optimizer, Phase, Precision
from gnnperf.devices import get_device
from gnnperf.graph import Edge, Node, OpClass, OpGraph, read_graph
from gnnperf.graph.opgraph import Tensor
from gnnperf.memory import estimate_memory

DEVICE = get_device("1080ti")
PARTS = ("weights_bytes", "gradients_bytes", "optimizer_bytes", "activations_bytes", "workspace_bytes", "runtime_bytes")


def estimate(spec, batch=1, device=DEVICE, **conditions):
    return estimate_memory(read_graph(zoo.build(spec, batch=batch)), device, Conditions(**conditions))


def chain(*operators, input_bytes=100):
    """Operators one after the other, each as (type, class, bytes that it writes)."""
    graph = OpGraph("chain", inputs=[Tensor("x", (1,), "float32", input_bytes)])
    read = input_bytes
    for number, (op_type, op_class, output_bytes) in enumerate(operators):
        shown = 0 if op_class == OpClass.VIEW else output_bytes
        graph.nodes.append(Node(f"n{number}", op_type, op_class, input_bytes=read, output_bytes=shown))
        if number:
            graph.edges.append(Edge(number - 1, number, read, 1))
        read = output_bytes
    return graph


def activations(graph, phase=Phase.INFERENCE):
    return estimate_memory(graph, DEVICE, Conditions(phase=phase)).activations_bytes


@pytest.mark.parametrize("spec", ["resnet50", "densenet121", "mobilenet_v2", "bert_base"])
@pytest.mark.parametrize("phase", [Phase.INFERENCE, Phase.TRAINING])
def test_the_peak_is_the_sum_of_its_parts_and_grows_with_the_batch(spec, phase):
    found = [estimate(spec, batch, phase=phase, optimizer=Optimizer.SGD) for batch in (1, 2, 8)]
    for memory in found:
        assert memory.peak_bytes == sum(getattr(memory, part) for part in PARTS)
    assert found[0].activations_bytes * 2 == pytest.approx(found[1].activations_bytes, rel=1e-6)
    assert found[0].peak_bytes < found[1].peak_bytes < found[2].peak_bytes
    assert len({memory.weights_bytes for memory in found}) == 1


def test_training_needs_gradients_and_what_the_optimizer_remembers():
    weights = 4 * zoo.count("resnet50").parameters
    inference = estimate("resnet50", 8)
    assert inference.gradients_bytes == inference.optimizer_bytes == 0
    assert inference.weights_bytes == pytest.approx(weights, rel=0.01)
    for optimizer, states in (("none", 0), ("sgd", 0), ("momentum", 1), ("adam", 2), ("adadelta", 2), ("rmsprop", 1)):
        memory = estimate("resnet50", 8, phase=Phase.TRAINING, optimizer=Optimizer(optimizer))
        assert memory.gradients_bytes == pytest.approx(weights)
        assert memory.optimizer_bytes == pytest.approx(states * weights)
        assert memory.activations_bytes > 3 * inference.activations_bytes


def test_half_precision_halves_inference_and_trains_full_weights():
    full, half = (estimate("resnet50", 8, precision=precision) for precision in (Precision.FP32, Precision.FP16))
    assert half.weights_bytes == pytest.approx(full.weights_bytes / 2, rel=1e-6)
    assert half.activations_bytes == pytest.approx(full.activations_bytes / 2, rel=1e-6)
    mixed = estimate("resnet50", 8, phase=Phase.TRAINING, precision=Precision.FP16)
    assert mixed.gradients_bytes == pytest.approx(full.weights_bytes, rel=0.01)
    assert mixed.weights_bytes == pytest.approx(1.5 * full.weights_bytes, rel=0.01)


def test_a_tensor_is_freed_after_its_last_reader():
    conv = ("Conv", OpClass.CONV)
    assert activations(chain((*conv, 1000), (*conv, 300), (*conv, 200))) == 100 + 1000 + 300
    assert activations(chain((*conv, 200), (*conv, 300), (*conv, 1000))) == 100 + 300 + 1000


def test_a_relu_in_place_and_a_view_take_no_memory():
    conv, relu, view = ("Conv", OpClass.CONV), ("Relu", OpClass.ACTIVATION), ("Reshape", OpClass.VIEW)
    assert activations(chain((*conv, 1000), (*relu, 1000), (*view, 1000))) == 100 + 1000
    assert activations(chain((*conv, 1000), ("Gelu", OpClass.ACTIVATION, 1000))) == 100 + 2000


def test_a_skip_connection_keeps_its_tensor():
    conv = ("Conv", OpClass.CONV)
    graph = chain((*conv, 1000), (*conv, 10), (*conv, 10), (*conv, 500))
    plain = activations(graph)
    graph.nodes.append(Node("add", "Add", OpClass.ELEMENTWISE, input_bytes=1500, output_bytes=1000))
    graph.edges += [Edge(3, 4, 500, 1), Edge(0, 4, 1000, 1)]
    assert plain == 100 + 1000 + 10 and activations(graph) == 100 + 1000 + 500 + 1000


def test_backward_a_gradient_beside_every_tensor_that_is_kept():
    conv = ("Conv", OpClass.CONV)
    # In the second: the input and 1000 are kept, the output 200 is the caller's, and the gradients of 300 and 1000.
    graph = chain((*conv, 1000), (*conv, 300), (*conv, 200))
    assert activations(graph, Phase.TRAINING) == 100 + 1000 + 200 + 300 + 1000


def test_a_device_without_a_fixed_memory_is_not_judged():
    endless = dataclasses.replace(DEVICE, memory_gb=None)
    assert estimate("resnet18", device=endless).fits is None
    small = dataclasses.replace(DEVICE, memory_gb=0.2)
    assert estimate("resnet18", device=small).fits is False and estimate("resnet18").fits is True


def test_the_body_of_a_loop_holds_one_round():
    graph = chain(("Conv", OpClass.CONV, 1000))
    node = graph.nodes[0]
    node.repeats, node.input_bytes, node.output_bytes = 50, 50 * 100, 50 * 1000
    assert activations(graph) == 100 + 1000


def test_tied_weights_count_once():
    tied = read_graph(zoo.build("gpt2"))
    memory = estimate_memory(tied, DEVICE, Conditions())
    masks = 12 * 1024 * 1024  # a byte an entry; they are no parameters
    assert memory.weights_bytes == pytest.approx(4 * tied.parameters + masks, rel=1e-4)
