"""The expansion of an ONNX operator, in a graph of one operator."""

from dfcompile.testing import check_onnx_expansion


def test_softmax_takes_three_tasks() -> None:
    graph = "g (float[3,4] x) => (float[3,4] y) { y = Softmax <axis = 1> (x) }"
    dag = check_onnx_expansion("Softmax", "unshifted", graph=graph)

    assert dag.tasks_count == 3
