"""``quantization_config`` of every method, drawn together with what it says of a weight, activations and caches.

What a weight takes is written here anew, from the definitions of the formats, and shares no code with dfcompile.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from tests.fuzz.draw import Draw

Keys = dict[str, object]
GROUPS = (16, 32, 64, 128, 256)
FREE = ("meta", "observer_kwargs")  # mappings whose keys are free


@dataclass(frozen=True, slots=True)
class Stored:
    """A format: its name, bits of an element, elements of a group, and bits of the scale and zero point beside one."""

    name: str
    width: int
    group: int = 0
    beside: int = 0

    def __post_init__(self) -> None:
        if not self.group:
            object.__setattr__(self, "beside", 0)  # of rows and tensors nothing is counted

    @property
    def bits(self) -> Fraction:
        """Of an element with its share of scales and zero points."""
        return self.width + Fraction(self.beside, self.group or 1)

    def bytes_of(self, elements: int) -> int:
        groups = -(-elements // self.group) if self.group else 0
        return -(-(elements * self.width + groups * self.beside) // 8)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A configuration without lists of modules.

    Attributes:
        keys: of it.
        weights: what quantised matrices are stored in; ``None``: none is quantised.
        activations: what they are multiplied with; ``None``: of the dtype.
        kv: of caches; ``None``: of the dtype.
        lists: keys that may list the modules that stay.
        head: whether the head is quantised: ``listed`` if no list names it, ``absent`` if there is a list that does not
            name it, ``never`` if nothing says so.
        only: kinds of matrices that are quantised at all; empty: all.
        second: adds another format for some modules; gives it, and what they are multiplied with.
        inside: key of the mapping in which lists stand, if not at the top.
    """

    keys: Keys
    weights: Stored | None
    activations: Stored | None = None
    kv: Stored | None = None
    lists: tuple[str, ...] = ("modules_to_not_convert",)
    head: str = "listed"
    only: tuple[str, ...] = ()
    second: Callable[[Draw, list[str]], tuple[Stored | None, Stored | None]] | None = None
    inside: str = ""


FP8 = Stored("fp8", 8)
INT8 = Stored("int8", 8)
NVFP4 = Stored("nvfp4", 4, 16, 8)
MXFP4 = Stored("mxfp4", 4, 32, 8)


def _some(draw: Draw, **keys: object) -> Keys:
    """Return a few of some keys that change nothing."""
    return {key: keys[key] for key in draw.some(sorted(keys))}


def _fp8(draw: Draw, base: int) -> Drawn:
    keys: Keys = {"quant_method": "fp8", "activation_scheme": draw.choice(["dynamic", "static"])}
    weights, kv = FP8, None
    if draw.chance(0.6):
        rows, columns = draw.choice([64, 128]), draw.choice([64, 128])
        keys["weight_block_size"] = [rows, columns]
        weights = Stored("fp8", 8, rows * columns, 32)
    if draw.chance(0.3):
        keys["kv_cache_scheme"], kv = draw.choice([("static", FP8), _tensor(draw, base)])
    keys |= _some(draw, fmt="e4m3", scale_fmt="ue8m0", dequantize=False)
    return Drawn(keys, weights, FP8, kv, ("modules_to_not_convert", "ignored_layers"), "absent")


def _fbgemm(draw: Draw, base: int) -> Drawn:
    keys = {"quant_method": "fbgemm_fp8", **_some(draw, activation_scale_ub=1200.0)}
    return Drawn(keys, FP8, FP8, head="absent")


def _mxfp4(draw: Draw, base: int) -> Drawn:
    return Drawn({"quant_method": "mxfp4", **_some(draw, dequantize=False)}, MXFP4, only=("experts",))


def _awq(draw: Draw, base: int) -> Drawn:
    bits, group, zero = draw.choice([3, 4, 8]), draw.choice([-1, *GROUPS]), draw.chance(0.6)
    older = draw.chance(0.4)
    keys: Keys = {"w_bit" if older else "bits": bits, "q_group_size" if older else "group_size": group}
    if not older or draw.chance(0.5):
        keys["quant_method"] = "awq"
    keys |= {"zero_point": zero, **_some(draw, backend="autoawq", version="gemm", do_fuse=False)}
    if draw.chance(0.2):
        keys["exllama_config"] = {"version": 2, "max_batch_size": 8}
    head = draw.chance(0.3)
    if head or draw.chance(0.3):
        keys["lm_head"] = head
    weights = Stored(f"int{bits}", bits, max(group, 0), 16 + (bits if zero else 0))
    return Drawn(keys, weights, head="listed" if head else "never")


def _gptq(draw: Draw, base: int) -> Drawn:
    bits, group, sym = draw.choice([2, 3, 4, 8]), draw.choice([-1, *GROUPS]), draw.chance(0.6)
    keys: Keys = {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": sym}
    keys |= _some(draw, desc_act=True, damp_percent=0.1, true_sequential=True, meta={"a": {"b": 1}}, dataset="c4",
                  checkpoint_format="gptq", pack_dtype="int32", static_groups=False)  # fmt: skip
    head = draw.chance(0.3)
    if head:
        keys["lm_head"] = True

    def second(draw: Draw, names: list[str]) -> tuple[Stored | None, None]:
        other, changed = draw.choice([2, 3, 4, 8]), draw.choice(GROUPS)
        keys["dynamic"] = {f"+:{_regular(name)}$": {"bits": other, "group_size": changed} for name in names}
        return Stored(f"int{other}", other, changed, 16 + (0 if sym else other)), None

    weights = Stored(f"int{bits}", bits, max(group, 0), 16 + (0 if sym else bits))
    return Drawn(keys, weights, head="listed" if head else "never", second=second)


def _bitsandbytes(draw: Draw, base: int) -> Drawn:
    keys: Keys = {"quant_method": "bitsandbytes"} if draw.chance(0.8) else {}
    keys |= _some(draw, llm_int8_threshold=6.0, bnb_4bit_compute_dtype="bfloat16", llm_int8_has_fp16_weight=False)
    weights, activations = None, None
    if draw.chance(0.4):
        keys["load_in_8bit"], weights, activations = True, INT8, INT8
    elif draw.chance(0.9):
        double = draw.chance(0.5)
        keys |= {"load_in_4bit": True, "bnb_4bit_use_double_quant": double, "bnb_4bit_quant_type": "nf4"}
        weights = Stored("int4", 4, 64 * 256, 8 * 256 + 32) if double else Stored("int4", 4, 64, 32)
    else:
        keys["load_in_4bit"] = False
    return Drawn(keys, weights, activations, lists=("llm_int8_skip_modules",), head="absent")


def _hqq(draw: Draw, base: int) -> Drawn:
    bits, group = draw.choice([1, 2, 3, 4, 8]), draw.choice([None, *GROUPS])
    weights: Keys = {"nbits": bits, "group_size": group, **_some(draw, axis=1, optimize=True, channel_wise=True)}
    config: Keys = {"weight_quant_params": weights, **_some(draw, scale_quant_params=None, offload_meta=False)}
    stored = Stored(f"int{bits}", bits, group or 0, 32)
    return Drawn({"quant_method": "hqq", "quant_config": config}, stored, lists=("skip_modules",), head="absent")


def _tensor(draw: Draw, base: int, *, narrow: bool = False) -> tuple[Keys, Stored]:
    """Return a scheme of compressed-tensors and what it says."""
    dtypes = {"torch.uint8": 8, "torch.float8_e4m3fn": 8, "torch.bfloat16": 16, "torch.float32": 32}
    scale = draw.choice([None, None, *dtypes])
    if draw.chance(0.5):
        bits, symmetric = draw.choice([4, 8] if narrow else [2, 3, 4, 8]), draw.chance(0.7)
        keys: Keys = {"num_bits": bits, "type": draw.choice(["int", "INT"]), "symmetric": symmetric}
        kind, beside = "int", 0 if symmetric else bits
        scale_bits = base if scale is None else dtypes[scale]
    else:
        bits, kind, beside = draw.choice([4, 8]), "fp", 0
        keys = {"num_bits": bits, "type": "float"}
        scale_bits = dtypes[scale] if scale is not None else 8 if bits == 4 else base
    if scale is not None:
        keys["scale_dtype"] = scale
    keys |= _some(draw, observer="minmax", observer_kwargs={"a": 1}, actorder=None, dynamic=False, zp_dtype=None)
    group, way = 0, draw.choice(["tensor", "channel", "group", "group", "implied", "none", "block"])
    if way in ("group", "implied"):
        group = draw.choice(GROUPS)
        keys |= {"group_size": group, **({"strategy": "group"} if way == "group" else {})}
    elif way == "block":
        group = 128 * 64
        keys |= {"strategy": "block", "block_structure": draw.choice([[128, 64], "128x64"])}
    elif way != "none":
        keys["strategy"] = way
    name = (
        {16: "nvfp4", 32: "mxfp4"}.get(group, "fp4")
        if kind == "fp" and bits == 4 and scale_bits == 8
        else f"{kind}{bits}"
    )
    return keys, Stored(name, bits, group, scale_bits + beside)


def _inputs(draw: Draw) -> tuple[Keys | None, Stored | None]:
    """Return a scheme of activations of compressed-tensors that is as wide as weights or wider."""
    kind = draw.choice(["", "int", "float"])
    if not kind:
        return None, None
    keys: Keys = {"num_bits": 8, "type": kind, "strategy": "token", "dynamic": True}
    return keys, INT8 if kind == "int" else FP8


def _compressed(draw: Draw, base: int) -> Drawn:
    (weights, stored), (inputs, activations) = _tensor(draw, base), _inputs(draw)
    group: Keys = {"targets": ["Linear"], "weights": weights, **_some(draw, output_activations=None)}
    if inputs is not None or draw.chance(0.3):
        group["input_activations"] = inputs
    groups: Keys = {"group_0": group}
    keys: Keys = {"quant_method": "compressed-tensors", "config_groups": groups}
    keys |= _some(draw, format="pack-quantized", global_compression_ratio=1.5, quantization_status="compressed",
                  sparsity_config={}, transform_config={}, version="0.1", run_compressed=True)  # fmt: skip
    kv = None
    if draw.chance(0.3):
        keys["kv_cache_scheme"], kv = _tensor(draw, base)

    def second(draw: Draw, names: list[str]) -> tuple[Stored, Stored | None]:
        other, made = _tensor(draw, base)
        more = inputs if draw.chance(0.8) else None
        targets = [draw.choice([name, f"re:{_regular(name)}$"]) for name in names]
        groups[draw.choice(["a", "group_1"])] = {"targets": targets, "weights": other, "input_activations": more}
        return made, None if more is None else activations

    return Drawn(keys, stored, activations, kv, ("ignore",), second=second)


_ALGORITHMS: Mapping[str, tuple[str, int, int, int, Stored | None]] = {
    # kind, bits, group, bits of a scale (0: of the dtype), activations
    "FP8": ("fp", 8, 0, 0, FP8),
    "NVFP4": ("fp", 4, 16, 8, NVFP4),
    "W4A16_NVFP4": ("fp", 4, 16, 8, None),
    "W4A16_AWQ": ("int", 4, 128, 0, None),
    "W4A8_AWQ": ("int", 4, 128, 0, FP8),
    "MXFP8": ("fp", 8, 32, 8, Stored("fp8", 8, 32, 8)),
    "W8A8_SQ_PER_CHANNEL": ("int", 8, 0, 0, INT8),
    "W8A16": ("int", 8, 0, 0, None),
}


def _modelopt(draw: Draw, base: int) -> Drawn:
    name = draw.choice(sorted(_ALGORITHMS))
    kind, bits, group, scale, activations = _ALGORITHMS[name]
    keys: Keys = {"quant_algo": draw.choice([name, name.lower()])}
    if group and draw.chance(0.7):
        group = draw.choice([group, 32])
        keys["group_size"] = group
    beside = scale or base
    if kind == "int" and group and draw.chance(0.4):
        zero = draw.chance(0.5)
        keys["has_zero_point"] = zero
        beside += bits if zero else 0
    keys |= _some(draw, pre_quant_scale=True)
    called = {16: "nvfp4", 32: "mxfp4"}[group] if kind == "fp" and bits == 4 else f"{kind}{bits}"
    weights = Stored(called, bits, group, beside)
    kv = draw.choice([None, None, FP8, INT8, NVFP4])
    if kv is not None or draw.chance(0.3):
        keys["kv_cache_quant_algo"] = None if kv is None else kv.name.upper()
    producer = {"name": "modelopt", "version": "0.29"}
    if draw.chance(0.5):
        outer: Keys = {"producer": producer, "quantization": keys}
        return Drawn(outer, weights, activations, kv, ("exclude_modules",), inside="quantization")
    keys |= {"quant_method": "modelopt", "producer": producer}
    if draw.chance(0.4):
        scheme: Keys = {"num_bits": bits, "type": "int" if kind == "int" else "float", "dynamic": False}
        if group:
            scheme["group_size"] = group
        keys["config_groups"] = {"group_0": {"weights": scheme, "targets": ["Linear"]}}
    return Drawn(keys, weights, activations, kv, ("ignore", "exclude_modules"))


def _spec(draw: Draw, base: int, *, wide: bool = False) -> tuple[Keys, Stored]:
    """Return a specification of quark and what it says; wide ones are of 8 bits."""
    widths = {"fp8_e4m3": 8, "int8": 8} if wide else {
        "fp8_e4m3": 8, "fp8_e5m2": 8, "fp6_e2m3": 6, "fp4": 4, "int8": 8, "uint8": 8, "int4": 4, "uint4": 4, "int2": 2,
    }  # fmt: skip
    dtype = draw.choice(sorted(widths))
    bits, is_float = widths[dtype], dtype.startswith("fp")
    keys: Keys = {"dtype": dtype, **_some(draw, is_dynamic=True, ch_axis=0, observer_cls="A", is_scale_quant=False)}
    symmetric = is_float or draw.chance(0.6)
    keys["symmetric"] = symmetric
    scheme = draw.choice(["per_tensor", "per_channel", "per_group", "per_group"])
    keys["qscheme"], group = scheme, 0
    scale = 8 if is_float and bits < 8 else base
    if scheme == "per_group":
        group = draw.choice(GROUPS)
    elif dtype == "fp4":
        keys["qscheme"], group = "per_group", 32
    if group:
        keys["group_size"] = group
    if draw.chance(0.3):
        form = draw.choice(["e8m0", "float32"])
        keys["scale_format"], scale = form, 8 if form == "e8m0" else 32
    elif draw.chance(0.3):
        kind = draw.choice(["float", "float32", "bfloat16"])
        keys["scale_type"] = kind
        scale = {"float": scale, "float32": 32, "bfloat16": 16}[kind]
    name = f"fp{bits}" if is_float else f"int{bits}"
    if dtype == "fp4" and scale == 8:
        name = {16: "nvfp4", 32: "mxfp4"}.get(group, "fp4")
    return keys, Stored(name, bits, group, scale + (0 if symmetric else bits))


def _quark(draw: Draw, base: int) -> Drawn:
    weight, stored = _spec(draw, base)
    every: Keys = {"weight": weight, **_some(draw, bias=None, output_tensors=None, target_device="cpu")}
    inputs, activations = None, None
    if draw.chance(0.5):
        inputs, activations = _spec(draw, base, wide=True)
    every["input_tensors"] = inputs
    keys: Keys = {"quant_method": "quark", "global_quant_config": every, "layer_quant_config": {}}
    keys |= _some(draw, version="1.0", quant_mode="eager_mode", layer_type_quant_config={}, algo_config=None,
                  export={"kv_cache_group": [], "weight_format": "real_quantized"})  # fmt: skip
    if draw.chance(0.2):
        keys["algo_config"] = [{"name": "awq", "scaling_layers": [{"prev_op": "a"}]}]
    kv = None
    if draw.chance(0.3):
        cached, kv = _spec(draw, base, wide=True)
        layer: Keys = {"weight": weight, "output_tensors": cached, "input_tensors": inputs}
        keys["kv_cache_quant_config"] = {"*k_proj": layer, "*v_proj": layer}

    def second(draw: Draw, names: list[str]) -> tuple[Stored | None, Stored | None]:
        other, made = draw.choice([_spec(draw, base), (None, None)])
        more = inputs if other is not None else None
        layer = {"weight": other, "input_tensors": more, "output_tensors": None}
        keys["layer_quant_config"] = dict.fromkeys(names, layer)
        return made, None if more is None else activations

    return Drawn(keys, stored, activations, kv, ("exclude",), second=second)


_CONFIGS: Mapping[str, tuple[int, int, int, Stored | None]] = {
    # bits, group, bits of a zero point, activations
    "Int4WeightOnlyConfig": (4, 128, 16, None),
    "Int8WeightOnlyConfig": (8, 0, 0, None),
    "Int8DynamicActivationInt8WeightConfig": (8, 0, 0, INT8),
    "Int8DynamicActivationInt4WeightConfig": (4, 32, 0, INT8),
    "Float8DynamicActivationInt4WeightConfig": (4, 128, 0, FP8),
    "Float8WeightOnlyConfig": (8, 0, 0, None),
    "Float8DynamicActivationFloat8WeightConfig": (8, 0, 0, FP8),
}


def _config(
    draw: Draw, base: int, activations: Stored | None = None, *, fixed: bool = False
) -> tuple[Keys, Stored, Stored | None, str]:
    """Return a configuration of torchao, what it says, and its name."""
    names = [name for name, (_, _, _, found) in sorted(_CONFIGS.items()) if not fixed or found == activations]
    name = draw.choice(names)
    bits, group, zero, found = _CONFIGS[name]
    data = _some(draw, set_inductor_config=True, version=2)
    if group and draw.chance(0.6):
        group = draw.choice(GROUPS)
        data["group_size"] = group
    kind = "fp" if name.startswith("Float8") and "Int4" not in name else "int"
    if kind == "fp" and draw.chance(0.4):
        row = {"_type": "PerRow", "_data": {}}
        data["granularity"] = draw.choice([row, [row, row]])
    return (
        {"_type": name, "_version": 1, "_data": data},
        Stored(f"{kind}{bits}", bits, group, base + zero),
        found,
        name,
    )


def _torchao(draw: Draw, base: int) -> Drawn:
    tagged, stored, activations, name = _config(draw, base)
    keys: Keys = {"quant_method": "torchao", **_some(draw, include_input_output_embeddings=False)}
    if draw.chance(0.3) and not name.startswith("Float8"):
        words = name.removesuffix("Config")
        plain = "".join(f"_{char.lower()}" if char.isupper() else char for char in words).lstrip("_")
        data = tagged["_data"]
        assert isinstance(data, dict)
        keys |= {"quant_type": plain, "quant_type_kwargs": data}
        return Drawn(keys, stored, activations, head="absent")
    keys["quant_type"] = {"default": tagged}

    def second(draw: Draw, names: list[str]) -> tuple[Stored | None, Stored | None]:
        if draw.chance(0.2):
            _named(keys, tagged, dict.fromkeys(names))
            return None, None
        other, made, found, _ = _config(draw, base, activations, fixed=draw.chance(0.8))
        _named(keys, tagged, dict.fromkeys(names, other))
        return made, found

    return Drawn(keys, stored, activations, head="absent", second=second)


def _named(keys: Keys, default: Keys, configs: Mapping[str, object]) -> None:
    """Give modules configurations of their own; all others keep theirs."""
    data = {"module_fqn_to_config": {"_default": default, **configs}}
    keys["quant_type"] = {"default": {"_type": "ModuleFqnToConfig", "_version": 1, "_data": data}}


def _regular(name: str) -> str:
    return name.replace(".", r"\.")


METHODS: Mapping[str, Callable[[Draw, int], Drawn]] = {
    "awq": _awq,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed,
    "fbgemm_fp8": _fbgemm,
    "fp8": _fp8,
    "gptq": _gptq,
    "hqq": _hqq,
    "modelopt": _modelopt,
    "mxfp4": _mxfp4,
    "quark": _quark,
    "torchao": _torchao,
}
