"""What one iteration of a task computes as statements of SystemVerilog, one operation each, typed as C++ types it.

Integers are of their width and wrap around. Real numbers are `real` variables: each operation on float32 is rounded to
it, of float64 it is as it is. Functions such as exp are those of the simulator in double precision, rounded once.
"""

import ast
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

from dfcompile.errors import UserError
from dfcompile.frontend import element_kind
from dfcompile.lowering.expressions import Reduction, expression_tree

WORD_BITS: Final[Mapping[str, int]] = MappingProxyType(
    {"bool": 8, "float32": 32, "float64": 64}
    | {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
Value: TypeAlias = tuple[str, str]  # a variable or literal, and its element type

_ARITHMETIC: Final[Mapping[type[ast.operator], str]] = MappingProxyType(
    {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%"}
)
_OF_BITS: Final[Mapping[type[ast.operator], str]] = MappingProxyType(
    {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<<", ast.RShift: ">>>"}
)
_COMPARISONS: Final[Mapping[type[ast.cmpop], str]] = MappingProxyType(
    {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
)
_FUNCTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {name: f"${name}" for name in ("exp", "sqrt", "floor", "ceil", "pow", "sin", "cos", "tan", "asin", "acos", "atan")}
    | {name: f"${name}" for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh")}
    | {"log": "$ln", "rint": "nearest"}
)
_CONSTANTS: Final[Mapping[str, str]] = MappingProxyType(
    {"inf": "$bitstoreal(64'h7ff0000000000000)", "nan": "$bitstoreal(64'h7ff8000000000000)"}
)


def declared(name: str, dtype: str, size: str = "") -> str:
    """Return the declaration of a variable of an element type, or of an array of them."""
    if element_kind(dtype) == "f":
        return f"real {name}{size};"
    if dtype == "bool":
        return f"reg {name}{size};"
    return f"reg {'' if dtype.startswith('u') else 'signed '}[{WORD_BITS[dtype] - 1}:0] {name}{size};"


def from_word(word: str, dtype: str) -> str:
    """Return the value that a word of its width holds."""
    return {"float32": f"from_single({word})", "float64": f"$bitstoreal({word})"}.get(dtype, word)


def to_word(value: str, dtype: str) -> str:
    """Return the word that holds a value."""
    return {"float32": f"to_single({value})", "float64": f"$realtobits({value})"}.get(dtype, value)


class Statements:
    """The statements of one iteration.

    Attributes:
        lines: in order.
        variables: declarations of those that they set.
    """

    def __init__(self, known: Mapping[str, Value]) -> None:
        self._known = known
        self.lines: list[str] = []
        self.variables: list[str] = []

    def computed(self, code: str, dtype: str) -> str:
        """Return the variable that holds what an expression of the known values comes to, stored as a type.

        Raises:
            UserError: it has an operation that no unit is for.
        """
        return self.cast(self._value(expression_tree(code)), dtype)[0]

    def combined(self, reduction: Reduction, sofar: str, value: str, dtype: str) -> str:
        """Return what accumulating a value gives, as an expression."""
        match reduction:
            case Reduction.SUM | Reduction.PRODUCT:
                text = f"{sofar} {'+' if reduction is Reduction.SUM else '*'} {value}"
                return f"single({text})" if dtype == "float32" else text
            case Reduction.MAX | Reduction.MIN:
                return f"{sofar} {'>' if reduction is Reduction.MAX else '<'} {value} ? {sofar} : {value}"

    def cast(self, value: Value, dtype: str) -> Value:
        """Return a value as another type; real numbers become integers by truncation."""
        name, found = value
        before, after = element_kind(found) == "f", element_kind(dtype) == "f"
        if dtype == found or (before and dtype == "float64"):
            return name, dtype
        if dtype == "bool":
            return self._set(dtype, f"{name} != 0")
        if before and after:
            return self._set(dtype, f"single({name})")
        if before:
            return self._set(dtype, f"whole({name})")
        if after:
            exact = self._set("float64", name)
            return self.cast(exact, dtype)
        return self._set(dtype, name)

    def _set(self, dtype: str, text: str) -> Value:
        name = f"v{len(self.variables)}"
        self.variables.append(declared(name, dtype))
        self.lines.append(f"{name} = {text};")
        return name, dtype

    def _real(self, dtype: str, text: str) -> Value:
        return self._set(dtype, f"single({text})" if dtype == "float32" else text)

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=bool() | int() | float()) | ast.Name():
                return self._leaf(node)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self._value(left), self._value(right), node)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                values, _ = self._alike([self._value(left), self._value(right)])
                return self._set("bool", f" {_COMPARISONS[type(op)]} ".join(values))
            case ast.Call(func=ast.Attribute(value=ast.Name(id="dace"), attr=dtype), args=[operand]):
                if dtype not in WORD_BITS:
                    raise UserError(f"element type {dtype}")
                return self.cast(self._value(operand), dtype)
            case ast.Call(func=ast.Name(id=name), args=operands):
                return self._call(name, [self._value(operand) for operand in operands])
            case ast.UnaryOp() | ast.BoolOp() | ast.IfExp():
                return self._chosen(node)
        raise UserError(f"operation {ast.unparse(node)!r}")

    def _leaf(self, node: ast.Constant | ast.Name) -> Value:
        match node:
            case ast.Constant(value=bool(value)):
                return f"1'b{int(value)}", "bool"
            case ast.Constant(value=int(value)):
                bits = 32 if value < 2**31 else 64
                return self._set(f"int{bits}", f"{bits}'sd{value}")
            case ast.Constant(value=float(value)):
                return self._set("float64", repr(value))
            case ast.Name(id=name) if name in self._known:
                return self._known[name]
            case ast.Name(id=name) if name in _CONSTANTS:
                return self._set("float64", _CONSTANTS[name])
        raise UserError(f"operation {ast.unparse(node)!r}")

    def _chosen(self, node: ast.UnaryOp | ast.BoolOp | ast.IfExp) -> Value:
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._set("bool", f"!{self._truth(operand)}")
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._promoted(self._value(operand))
            case ast.UnaryOp(op=op, operand=operand):
                name, dtype = self._promoted(self._value(operand))
                return self._set(dtype, f"{'-' if isinstance(op, ast.USub) else '~'}{name}")
            case ast.BoolOp(op=op, values=operands):
                return self._set("bool", (" & " if isinstance(op, ast.And) else " | ").join(map(self._truth, operands)))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                (one, other), dtype = self._alike([self._value(body), self._value(orelse)])
                return self._set(dtype, f"{self._truth(test)} ? {one} : {other}")

    def _truth(self, node: ast.expr) -> str:
        return self.cast(self._value(node), "bool")[0]

    def _binary(self, op: ast.operator, left: Value, right: Value, node: ast.expr) -> Value:
        (one, other), dtype = self._alike([self._promoted(left), self._promoted(right)])
        is_real = element_kind(dtype) == "f"
        if type(op) in _OF_BITS and not is_real:
            return self._set(dtype, f"{one} {_OF_BITS[type(op)]} {other}")
        if type(op) not in _ARITHMETIC or (is_real and isinstance(op, ast.Mod)):
            raise UserError(f"operation {ast.unparse(node)!r}")
        return self._real(dtype, f"{one} {_ARITHMETIC[type(op)]} {other}")

    def _call(self, name: str, operands: Sequence[Value]) -> Value:
        if name in ("max", "min"):
            found = operands[0]
            for operand in operands[1:]:
                (one, other), dtype = self._alike([found, operand])
                found = self._set(dtype, f"{one} {'>' if name == 'max' else '<'} {other} ? {one} : {other}")
            return found
        if name == "abs":
            value, dtype = self._promoted(operands[0])
            return self._set(dtype, f"{value} < 0 ? -{value} : {value}")
        if name == "isnan":
            return self._set("bool", f"{self.cast(operands[0], 'float64')[0]} != {operands[0][0]}")
        if name not in _FUNCTIONS:
            raise UserError(f"function {name!r}")
        dtype = "float32" if {dtype for _, dtype in operands} == {"float32"} else "float64"
        values = [self.cast(operand, dtype)[0] for operand in operands]
        return self._real(dtype, f"{_FUNCTIONS[name]}({', '.join(values)})")

    def _promoted(self, value: Value) -> Value:
        return self.cast(value, _promoted_type(value[1]))

    def _alike(self, values: Sequence[Value]) -> tuple[list[str], str]:
        """Return values as one type: that in which C++ computes with them."""
        dtypes = {dtype for _, dtype in values}
        dtype = dtypes.pop() if len(dtypes) == 1 else _common_type([_promoted_type(dtype) for _, dtype in values])
        return [self.cast(value, dtype)[0] for value in values], dtype


def _promoted_type(dtype: str) -> str:
    return "int32" if element_kind(dtype) in "iub" and WORD_BITS[dtype] < WORD_BITS["int32"] else dtype


def _common_type(dtypes: Sequence[str]) -> str:
    real = [dtype for dtype in dtypes if element_kind(dtype) == "f"]
    return max(real or dtypes, key=lambda dtype: (WORD_BITS[dtype], dtype.startswith("u")))
