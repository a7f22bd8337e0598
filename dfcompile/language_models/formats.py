"""Number formats of tensors, with their scales: bytes are exact."""

from collections.abc import Mapping

from msgspec import Struct, structs

from dfcompile.errors import UserError, nearest
from dfcompile.options.readers import pairs
from dfcompile.records import replace


class NumberFormat(Struct, frozen=True):
    """How the elements of a tensor are stored.

    Attributes:
        name: in options and reports.
        bits: of an element.
        group: elements that share a scale; 0 without scales.
        scale_bits: of a scale, and of its zero point if it has one.
    """

    name: str
    bits: int
    group: int = 0
    scale_bits: int = 0

    @property
    def stored_name(self) -> str:
        """Name of what kernels read: scales of blocks have kernels of their own."""
        return f"{self.name}_block" if self.name == "fp8" and self.group else self.name

    def bytes_of(self, elements: int) -> int:
        """Whole bytes that so many elements and their scales take."""
        scales = -(-elements // self.group) * self.scale_bits if self.group else 0
        return -(-(elements * self.bits + scales) // 8)


_ALL = (
    NumberFormat("fp32", 32),
    NumberFormat("bf16", 16),
    NumberFormat("fp16", 16),
    NumberFormat("fp8", 8),
    NumberFormat("int8", 8),
    NumberFormat("int4", 4, group=128, scale_bits=16),
    NumberFormat("mxfp4", 4, group=32, scale_bits=8),  # OCP MX: 4.25 bits
    NumberFormat("nvfp4", 4, group=16, scale_bits=8),  # 4.5 bits
)
FORMATS: Mapping[str, NumberFormat] = {form.name: form for form in _ALL}
WEIGHT_CLASSES = ("attention", "mlp", "experts", "router", "embedding", "head")
_NAMED: Mapping[str, tuple[str, ...]] = {"w": (), "a": ("activations", "vectors")}  # fields of words
_WORDS = ("w", "a", "kv", *WEIGHT_CLASSES)

ClassFormats = tuple[tuple[str, NumberFormat], ...]  # classes of matrices, each with its format


class Precision(Struct, frozen=True):
    """The format of each class of tensors.

    Attributes:
        vectors: of biases and norms.
        layers: what single layers have in other formats; empty: none.
        mixed: pairs of formats, ``WEIGHTS_ACTIVATIONS``, that are multiplied without making the narrower one wider.
    """

    attention: NumberFormat
    mlp: NumberFormat
    experts: NumberFormat
    router: NumberFormat
    embedding: NumberFormat
    head: NumberFormat
    activations: NumberFormat
    kv: NumberFormat
    vectors: NumberFormat
    layers: tuple[ClassFormats, ...] = ()
    mixed: frozenset[str] = frozenset()

    def having(self, formats: Mapping[str, NumberFormat]) -> "Precision":
        """Return the precision with other formats of some classes."""
        return structs.replace(self, **formats)

    def within(self, formats: ClassFormats) -> "Precision":
        """Return the precision in a layer that has some classes of matrices in other formats."""
        return self.having(dict(formats)) if formats else self

    def product(self, weights: NumberFormat) -> str:
        """Name of the rate at which weights multiply activations: that of the pair, or else of the wider operand."""
        pair = self._pair(weights)
        if pair in self.mixed:
            return pair
        return weights.name if weights.bits > self.activations.bits else self.activations.name

    def widens(self, form: NumberFormat) -> bool:
        """Whether elements of a format are made wider before they are multiplied."""
        return form.bits < self.activations.bits and self._pair(form) not in self.mixed

    def _pair(self, weights: NumberFormat) -> str:
        return f"{weights.name}_{self.activations.name}"

    @property
    def summary(self) -> str:
        """What is what, as `--dtype` has it."""
        named = {word: getattr(self, word).name for word in WEIGHT_CLASSES}
        most = max(dict.fromkeys(named.values()), key=list(named.values()).count)
        odd = [f"{word}={name}" for word, name in named.items() if name != most]
        return ",".join((f"w={most}", *odd, f"a={self.activations.name}", f"kv={self.kv.name}"))


def number_format(name: str, where: str = "--dtype") -> NumberFormat:
    """Return the format of a name.

    Raises:
        UserError: there is none; the message has the nearest one.
    """
    if name not in FORMATS:
        raise UserError(f"{where}: unknown number format {name!r}{nearest(name, FORMATS)}")
    return FORMATS[name]


def uniform(form: NumberFormat) -> Precision:
    """Return the precision in which all is of one format."""
    return Precision(form, form, form, form, form, form, form, form, form)


def with_dtypes(precision: Precision, text: str) -> Precision:
    """Return a precision with what ``w=fp8,kv=fp8,head=bf16`` changes; one format alone is for all.

    Raises:
        UserError: an unknown class or format, or a class twice.
    """
    if "=" not in text:
        return uniform(number_format(text))
    asked = {word: number_format(name) for word, name in pairs("--dtype", text, _WORDS, "class of tensors")}
    forms = dict.fromkeys(WEIGHT_CLASSES, asked["w"]) if "w" in asked else {}
    forms |= {name: form for word, form in asked.items() for name in _NAMED.get(word, (word,))}
    layers = tuple(tuple(one for one in formats if one[0] not in asked) for formats in precision.layers)
    return replace(precision.having(forms), layers=() if "w" in asked else layers)
