"""What one iteration of a task computes as statements of SystemVerilog, one operation each, typed as C++ types it.

Integers are of their width and wrap around. Operations on float32 are functions of `arithmetic.sv`, rounded each, which
`units.sv` has as circuits. float64 is for simulators alone, and so are functions such as exp: theirs in double
precision, rounded once. What C++ computes of float32 values in float64, and rounds to float32 at once, is the operation
on float32: a double has more than twice the digits, and so the second rounding changes nothing.
"""

import ast
import operator
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from dfcompile.errors import UserError
from dfcompile.frontend import element_kind
from dfcompile.lowering.expressions import Reduction, expression_tree

WORD_BITS: Final[Mapping[str, int]] = MappingProxyType(
    {"bool": 8, "float32": 32, "float64": 64}
    | {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
Value: TypeAlias = tuple[str, str]  # a variable or literal, and its element type

Operators: TypeAlias = Mapping[type[ast.operator], str]

_ARITHMETIC: Final[Operators] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%"}
_OF_BITS: Final[Operators] = {
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<<", ast.RShift: ">>>",
}  # fmt: skip
_COMPARISONS: Final[Mapping[type[ast.cmpop], str]] = MappingProxyType(
    {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
)
_FUNCTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {name: f"${name}" for name in ("exp", "sqrt", "floor", "ceil", "pow", "sin", "cos", "tan", "asin", "acos", "atan")}
    | {name: f"${name}" for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh")}
    | {"log": "$ln"}
)
_UNITS: Final[Operators] = {ast.Add: "plus", ast.Sub: "minus", ast.Mult: "times", ast.Div: "over"}
_CONSTANTS: Final[Mapping[str, float]] = MappingProxyType({"inf": float("inf"), "nan": float("nan")})


def declared(name: str, dtype: str, size: str = "") -> str:
    """Return the declaration of a variable of an element type, or of an array of them."""
    if element_kind(dtype) == "f":
        return f"{'`FLOAT32' if dtype == 'float32' else 'real'} {name}{size};"
    if dtype == "bool":
        return f"reg {name}{size};"
    return f"reg {'' if dtype.startswith('u') else 'signed '}[{WORD_BITS[dtype] - 1}:0] {name}{size};"


def from_word(word: str, dtype: str) -> str:
    """Return the value that a word of its width holds."""
    return {"float32": f"arithmetic::from_single({word})", "float64": f"$bitstoreal({word})"}.get(dtype, word)


def to_word(value: str, dtype: str) -> str:
    """Return the word that holds a value."""
    return {"float32": f"arithmetic::to_single({value})", "float64": f"$realtobits({value})"}.get(dtype, value)


class Statements:
    """The statements of one iteration.

    Attributes:
        lines: in order, without those that nothing needs.
        variables: declarations of those that they set.
        unbuilt: the first operation that is no circuit, but for simulators alone; ``None`` if there is none.
    """

    def __init__(self, known: Mapping[str, Value]) -> None:
        self._known = known
        self._texts: dict[str, tuple[str, str]] = {}  # of each variable: its element type, and what it is set to
        self._constants: dict[str, int | float] = {}
        self._narrow: dict[str, str] = {}  # of a variable of float64 one of float32 that has the same value
        self._rounded: dict[str, str] = {}  # of one of float64: the operation that its rounding to float32 is
        self._unbuilt: dict[str, str] = {}  # why a variable is set by no circuit
        self.lines: list[str] = []
        self.variables: list[str] = []
        self.unbuilt: str | None = None

    def computed(self, code: str, dtype: str) -> str:
        """Return the variable that holds what an expression of the known values comes to, stored as a type.

        Raises:
            UserError: it has an operation that no unit is for.
        """
        result, _ = self.cast(self._value(expression_tree(code)), dtype)
        needed, live = {result}, []
        for name, (_, text) in reversed(self._texts.items()):
            if name in needed:
                needed.update(re.findall(r"\b\w+\b", text))
                live.append(name)
        live.reverse()
        self.lines = [f"{name} = {self._texts[name][1]};" for name in live]
        self.variables = [declared(name, self._texts[name][0]) for name in live]
        simulated = {name: "float64" for name in live if self._texts[name][0] == "float64"} | self._unbuilt
        self.unbuilt = next((simulated[name] for name in live if name in simulated), None)
        return result

    def combined(self, reduction: Reduction, sofar: str, value: str, dtype: str) -> str:
        """Return what accumulating a value gives, as an expression."""
        match reduction:
            case Reduction.SUM | Reduction.PRODUCT:
                return _operated(ast.Add() if reduction is Reduction.SUM else ast.Mult(), sofar, value, dtype)
            case Reduction.MAX | Reduction.MIN:
                op = ast.Gt() if reduction is Reduction.MAX else ast.Lt()
                return f"{_compared(op, sofar, value, dtype)} ? {sofar} : {value}"

    def cast(self, value: Value, dtype: str) -> Value:
        """Return a value as another type; real numbers become integers by truncation."""
        name, found = value
        before, after = element_kind(found) == "f", element_kind(dtype) == "f"
        if dtype == found:
            return value
        if name in self._constants and after:
            return self._constant(float(self._constants[name]), dtype)
        if before and name in self._narrow:
            return self.cast((self._narrow[name], "float32"), dtype)
        if dtype == "bool":
            zero = self._constant(0.0, found)[0] if before else "0"
            return self._set(dtype, _compared(ast.NotEq(), name, zero, found))
        if before:
            return self._from_real(name, found, dtype)
        return self._from_integer(value, dtype) if after else self._set(dtype, name)

    def _from_real(self, name: str, found: str, dtype: str) -> Value:
        if dtype == "float64":
            return self._widened(self._set(dtype, name), name)
        if dtype == "float32":
            return self._set(dtype, self._rounded.get(name, f"arithmetic::single({name})"))
        has_unit = dtype in ("int8", "uint8", "int16", "uint16", "int32")
        return self._set(dtype, f"arithmetic::whole({name})", "" if has_unit else f"{found} as {dtype}")

    def _from_integer(self, value: Value, dtype: str) -> Value:
        name, found = value
        if dtype == "float32" and WORD_BITS[found] <= WORD_BITS["int32"]:
            return self._set(dtype, f"arithmetic::from_integer({name})")
        exact = self._set("float64", name)
        if WORD_BITS[found] < WORD_BITS["int32"]:
            self._widened(exact, self.cast(value, "float32")[0])
        return self.cast(exact, dtype)

    def _set(self, dtype: str, text: str, unbuilt: str = "") -> Value:
        name = f"v{len(self._texts)}"
        self._texts[name] = dtype, text
        if unbuilt:
            self._unbuilt[name] = unbuilt
        return name, dtype

    def _widened(self, value: Value, narrow: str) -> Value:
        """Note that a value of float64 is that of a variable of float32."""
        self._narrow[value[0]] = narrow
        return value

    def _constant(self, number: float, dtype: str) -> Value:
        """Return a constant; one of float64 that float32 has, too, is noted as one of that."""
        if element_kind(dtype) != "f":
            bits = WORD_BITS[dtype]
            found = self._set(dtype, f"{'-' if number < 0 else ''}{bits}'sd{abs(int(number))}")
        else:
            with np.errstate(over="ignore"):
                single = np.float32(number)
            number = float(single) if dtype == "float32" else number
            text = repr(number)
            if not np.isfinite(number):
                text = f"$bitstoreal(64'h{np.float64(number).view(np.uint64):016x})"
            found = self._set(
                dtype, f"`SINGLE(32'h{single.view(np.uint32):08x}, {text})" if dtype == "float32" else text
            )
            if dtype == "float64" and (float(single) == number or number != number):
                self._widened(found, self._constant(number, "float32")[0])
        self._constants[found[0]] = number
        return found

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=bool() | int() | float()) | ast.Name():
                return self._leaf(node)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self._value(left), self._value(right), node)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                values, dtype = self._alike([self._value(left), self._value(right)])
                return self._set("bool", self._comparison(op, values, dtype))
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
                return self._constant(value, "int32" if value < 2**31 else "int64")
            case ast.Constant(value=float(value)):
                return self._constant(value, "float64")
            case ast.Name(id=name) if name in self._known:
                return self._known[name]
            case ast.Name(id=name) if name in _CONSTANTS:
                return self._constant(_CONSTANTS[name], "float64")
        raise UserError(f"operation {ast.unparse(node)!r}")

    def _chosen(self, node: ast.UnaryOp | ast.BoolOp | ast.IfExp) -> Value:
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._set("bool", f"!{self._truth(operand)}")
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._promoted(self._value(operand))
            case ast.UnaryOp(op=op, operand=operand):
                value = self._promoted(self._value(operand))
                return self._negated(value) if isinstance(op, ast.USub) else self._set(value[1], f"~{value[0]}")
            case ast.BoolOp(op=op, values=operands):
                return self._set("bool", (" & " if isinstance(op, ast.And) else " | ").join(map(self._truth, operands)))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                values, dtype = self._alike([self._value(body), self._value(orelse)])
                return self._selected(self._truth(test), values, dtype)

    def _truth(self, node: ast.expr) -> str:
        return self.cast(self._value(node), "bool")[0]

    def _negated(self, value: Value) -> Value:
        name, dtype = value
        if name in self._constants:
            return self._constant(-self._constants[name], dtype)
        if dtype == "float32":
            return self._set(dtype, f"arithmetic::negated({name})")
        found = self._set(dtype, f"-{name}")
        if name in self._narrow:
            self._widened(found, self._negated((self._narrow[name], "float32"))[0])
        return found

    def _comparison(self, op: ast.cmpop, values: Sequence[str], dtype: str) -> str:
        one, other = values
        if one in self._narrow and other in self._narrow:
            return _compared(op, self._narrow[one], self._narrow[other], "float32")
        return _compared(op, one, other, dtype)

    def _selected(self, test: str, values: Sequence[str], dtype: str) -> Value:
        one, other = values
        found = self._set(dtype, f"{test} ? {one} : {other}")
        if one in self._narrow and other in self._narrow:
            narrow = self._set("float32", f"{test} ? {self._narrow[one]} : {self._narrow[other]}")
            self._widened(found, narrow[0])
        return found

    def _binary(self, op: ast.operator, left: Value, right: Value, node: ast.expr) -> Value:
        (one, other), dtype = self._alike([self._promoted(left), self._promoted(right)])
        is_real = element_kind(dtype) == "f"
        if type(op) in _OF_BITS and not is_real:
            return self._set(dtype, f"{one} {_OF_BITS[type(op)]} {other}")
        if type(op) not in _ARITHMETIC or (is_real and isinstance(op, ast.Mod)):
            raise UserError(f"operation {ast.unparse(node)!r}")
        if is_real and one in self._constants and other in self._constants:
            kind = np.dtype(dtype).type
            with np.errstate(all="ignore"):
                number = _OPERATIONS[type(op)](kind(self._constants[one]), kind(self._constants[other]))
            return self._constant(float(number), dtype)
        found = self._set(dtype, _operated(op, one, other, dtype))
        if one in self._narrow and other in self._narrow:
            self._rounded[found[0]] = _operated(op, self._narrow[one], self._narrow[other], "float32")
        return found

    def _call(self, name: str, operands: Sequence[Value]) -> Value:
        if name in ("max", "min"):
            found = operands[0]
            for operand in operands[1:]:
                values, dtype = self._alike([found, operand])
                test = self._comparison(ast.Gt() if name == "max" else ast.Lt(), values, dtype)
                found = self._selected(test, values, dtype)
            return found
        if name == "abs":
            value, dtype = self._promoted(operands[0])
            zero = self._constant(0, dtype)[0]
            test = self._comparison(ast.Lt(), (value, zero), dtype)
            return self._selected(test, (self._negated((value, dtype))[0], value), dtype)
        if name == "isnan":
            value, dtype = operands[0]
            is_real = element_kind(dtype) == "f"
            return self._set("bool", self._comparison(ast.NotEq(), (value, value), dtype) if is_real else "1'b0")
        dtype = "float32" if {dtype for _, dtype in operands} == {"float32"} else "float64"
        values = [self.cast(operand, dtype)[0] for operand in operands]
        if name == "rint":
            nearest = self._set(dtype, f"arithmetic::nearest({values[0]})")
            if values[0] in self._narrow:
                self._widened(nearest, self._set("float32", f"arithmetic::nearest({self._narrow[values[0]]})")[0])
            return nearest
        if name not in _FUNCTIONS:
            raise UserError(f"function {name!r}")
        text = f"{_FUNCTIONS[name]}({', '.join(values)})"
        return self._set(dtype, f"arithmetic::single({text})" if dtype == "float32" else text, f"function {name!r}")

    def _promoted(self, value: Value) -> Value:
        return self.cast(value, _promoted_type(value[1]))

    def _alike(self, values: Sequence[Value]) -> tuple[list[str], str]:
        """Return values as one type: that in which C++ computes with them."""
        dtypes = {dtype for _, dtype in values}
        dtype = dtypes.pop() if len(dtypes) == 1 else _common_type([_promoted_type(dtype) for _, dtype in values])
        return [self.cast(value, dtype)[0] for value in values], dtype


_OPERATIONS: Final = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def _operated(op: ast.operator, one: str, other: str, dtype: str) -> str:
    """Return an operation of arithmetic as an expression."""
    if dtype == "float32":
        return f"arithmetic::{_UNITS[type(op)]}({one}, {other})"
    return f"{one} {_ARITHMETIC[type(op)]} {other}"


def _compared(op: ast.cmpop, one: str, other: str, dtype: str) -> str:
    """Return a comparison as an expression."""
    if dtype != "float32":
        return f"{one} {_COMPARISONS[type(op)]} {other}"
    before, after, equal = (
        f"arithmetic::{call}" for call in (f"less({one}, {other})", f"less({other}, {one})", f"equal({one}, {other})")
    )
    texts: dict[type[ast.cmpop], str] = {
        ast.Lt: before, ast.LtE: f"({before} | {equal})", ast.Gt: after, ast.GtE: f"({after} | {equal})",
        ast.Eq: equal, ast.NotEq: f"!{equal}",
    }  # fmt: skip
    return texts[type(op)]


def _promoted_type(dtype: str) -> str:
    return "int32" if element_kind(dtype) in "iub" and WORD_BITS[dtype] < WORD_BITS["int32"] else dtype


def _common_type(dtypes: Sequence[str]) -> str:
    real = [dtype for dtype in dtypes if element_kind(dtype) == "f"]
    return max(real or dtypes, key=lambda dtype: (WORD_BITS[dtype], dtype.startswith("u")))
