"""Activation functions of recurrent operators: expressions with the numbers of ``activation_alpha`` and ``…_beta``."""

from collections.abc import Iterator, Mapping, Sequence

from dfcompile.lowering import Operator
from dfcompile.lowering.expansions.unary import FORMULAS, Formula
from dfcompile.lowering.expressions import literal, substitute

# What is an operator of its own means here what it means there; the others ONNX describes with the recurrent ones.
_ALONE = ("Elu", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Softplus", "Softsign", "Tanh", "ThresholdedRelu")
_FORMULAS: Mapping[str, Formula] = {
    **{name.lower(): FORMULAS[name] for name in _ALONE},
    "affine": Formula("alpha * a + beta"),
    "scaledtanh": Formula("alpha * tanh(beta * a)"),
}
_PARAMETERS = ("alpha", "beta")


def activations_of(op: Operator, defaults: Sequence[str], directions: int) -> tuple[tuple[str, ...], ...]:
    """Return per direction the activations of a recurrent operator, as expressions of ``a``.

    Each function takes its numbers from the attributes in turn, the next one where the last one stopped.

    Args:
        op: the operator.
        defaults: names of one direction's activations if the operator names none.
        directions: 1 or 2.

    Raises:
        UnsupportedOpError: a function is not known, or has not the numbers that it needs, or some are left over.
    """
    names = _names(op, defaults, directions)
    numbers = {name: iter(_numbers(op, f"activation_{name}")) for name in _PARAMETERS}
    found = tuple(_activation(op, name, numbers) for name in names)
    for name, left in numbers.items():
        if next(left, None) is not None:
            raise op.unsupported(f"attribute 'activation_{name}' has more numbers than {', '.join(names)} take")
    return tuple(found[len(defaults) * at : len(defaults) * (at + 1)] for at in range(directions))


def _names(op: Operator, defaults: Sequence[str], directions: int) -> tuple[str, ...]:
    given = op.attributes.get("activations")
    wanted = len(defaults) * directions
    if given is None:
        return (*defaults,) * directions
    names = tuple(name for name in given if isinstance(name, str)) if isinstance(given, list | tuple) else ()
    if op.op_type == "RNN":  # ONNX's own default has two of them, even of one direction
        names = names[:wanted] if len(names) == 2 else names
    if len(names) != wanted:
        raise op.unsupported(f"attribute 'activations' is {given!r} against {wanted} names")
    return names


def _activation(op: Operator, name: str, numbers: Mapping[str, Iterator[float]]) -> str:
    formula = _FORMULAS.get(name.lower())
    if formula is None:
        known = ", ".join([*_ALONE, "Affine", "ScaledTanh"])
        raise op.unsupported(f"activation {name!r} against one of {known}")
    values = {}
    for parameter in (one for one in _PARAMETERS if one in formula.expression):
        value = next(numbers[parameter], formula.defaults.get(parameter))
        if value is None:
            raise op.unsupported(f"no number in 'activation_{parameter}' for {name}, which has no default")
        values[parameter] = literal(value, "float32")  # ONNX has single precision attributes only
    return substitute(formula.expression, values)


def _numbers(op: Operator, name: str) -> tuple[float, ...]:
    found = op.attributes.get(name, ())
    if not isinstance(found, list | tuple) or not all(isinstance(item, int | float) for item in found):
        raise op.unsupported(f"attribute {name!r} is {found!r} against a list of numbers")
    return tuple(float(item) for item in found if isinstance(item, int | float))
