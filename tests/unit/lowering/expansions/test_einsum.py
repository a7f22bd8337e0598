import pytest

from dfcompile.errors import UserError
from dfcompile.lowering import Choice
from tests.onnx_nodes import Node, check_node, lowered, random, scopes

EQUATIONS: dict[str, list[tuple[int, ...]]] = {
    "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)],
    "bij,bkj->bik": [(2, 3, 4), (2, 5, 4)],
    "bji,bjk": [(2, 4, 3), (2, 4, 5)],
    "bhqd,bhkd->bhqk": [(2, 3, 4, 5), (2, 3, 6, 5)],
    "bqhd,bkhd->bhqk": [(2, 4, 3, 5), (2, 6, 3, 5)],
    "abc,cd->dab": [(2, 3, 4), (4, 5)],
    "ij,jk,kl->il": [(2, 3), (3, 4), (4, 5)],
    "bnqd,bnkd,bnk->bq": [(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5)],
    "ij->ji": [(2, 3)],
    "ba": [(2, 3)],
    "ij->": [(3, 4)],
    "ii->i": [(4, 4)],
    "ii": [(4, 4)],
    "iij,jk->ik": [(3, 3, 4), (4, 2)],
    "i,i": [(5,), (5,)],
    "i,j->ij": [(2,), (3,)],
    "ij,ij->ij": [(2, 3), (2, 3)],
    "ab,cd->ac": [(2, 3), (4, 5)],
    "i,->i": [(3,), ()],
    "...,...->...": [(2, 3), (1, 3)],
    "...ij,...jk->...ik": [(2, 3, 4, 5), (1, 3, 5, 6)],
    "a...b->...": [(2, 3, 4)],
    " i j , j k -> i k ": [(2, 3), (3, 4)],
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_equation_gives_what_onnx_gives(equation: str) -> None:
    operands = [random(shape, seed=seed) for seed, shape in enumerate(EQUATIONS[equation])]

    check_node(Node("Einsum", operands, attributes={"equation": equation}))


@pytest.mark.parametrize("name", ["mv", "op", "lmv", "ip", "columns", "rows"])
def test_contraction_is_a_matmul_with_any_expansion(name: str) -> None:
    node = Node("Einsum", [random((2, 3, 4)), random((2, 5, 4))], attributes={"equation": "bij,bkj->bik"})

    program = check_node(node, choices=[Choice("MatMul", name)])
    assert "op.matmul.broadcast" in scopes(program) or name in {"op", "ip", "columns", "rows"}
    assert not any("arrange" in scope for scope in scopes(program))  # a transposed operand is read as it stands


def test_what_ends_in_order_needs_no_last_copy() -> None:
    program = check_node(
        Node("Einsum", [random((2, 3, 4)), random((2, 4, 5))], attributes={"equation": "bij,bjk->bik"})
    )

    assert scopes(program) == ["op.matmul.broadcast", "op.matmul.mv", "op.matmul.gather"]


@pytest.mark.parametrize("equation", ["i-j", "1j->j", "ij->j->i", "ij->i.", "ij,j->i", "ijk->i", "ij->ik"])
def test_equation_that_is_none_or_does_not_fit_is_refused(equation: str) -> None:
    model = Node("Einsum", [random((2, 3))], attributes={"equation": "ij->ij"}).model()
    model.graph.node[0].attribute[0].s = equation.encode()

    with pytest.raises(UserError, match="node 'op': "):
        lowered(model)
