"""Number formats that a configuration states in ``quantization_config`` [hf]."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from dfcompile.errors import InternalError, UserError, nearest
from dfcompile.language_models.formats import FORMATS, NumberFormat, Precision, uniform
from dfcompile.language_models.quantisation_keys import ABOUT_MAKING, LISTS, READ
from dfcompile.language_models.quantised_layers import MODULES, is_listed, kept_classes
from dfcompile.records import replace

Keys = Mapping[str, object]

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_SCALE_BITS = 16
_BLOCKS_PER_DOUBLE = 256  # scales of 8 bits that share one of 32
_FP32 = 32
# Weights and activations of NVIDIA's and PyTorch's names.
_FP8, _INT8 = FORMATS["fp8"], FORMATS["int8"]
_MODELOPT = {
    "FP8": ("fp8", "fp8"), "FP8_PER_CHANNEL_PER_TOKEN": ("fp8", "fp8"), "FP8_PB_WO": ("fp8", ""),
    "NVFP4": ("nvfp4", "nvfp4"), "NVFP4_AWQ": ("nvfp4", "nvfp4"), "W4A16_AWQ": ("int4", ""), "INT4_AWQ": ("int4", ""),
    "W4A8_AWQ": ("int4", "fp8"), "W8A8_SQ_PER_CHANNEL": ("int8", "int8"), "INT8": ("int8", "int8"),
    "W8A16": ("int8", ""), "W4A16": ("int4", ""),
}  # fmt: skip
_TORCHAO = {
    "int4weightonly": (4, "int", ""), "int8weightonly": (8, "int", ""), "float8weightonly": (8, "float", ""),
    "int8dynamicactivationint8weight": (8, "int", "int8"), "int8dynamicactivationint4weight": (4, "int", "int8"),
    "float8dynamicactivationfloat8weight": (8, "float", "fp8"), "float8dynamicactivationint4weight": (4, "int", "fp8"),
}  # fmt: skip
_TORCHAO_GROUPS = {
    "int4weightonly": 128,
    "int8dynamicactivationint4weight": 32,
    "float8dynamicactivationint4weight": 128,
}


class _Stated(Struct, frozen=True):
    """What a configuration says of the matrices of layers.

    Attributes:
        weights: of each class of matrices; those that it leaves as they are have none.
        activations: that they are multiplied with; ``None``: of the configuration's dtype.
        kv: of caches; ``None``: as activations would be without quantisation.
        head: of the last matrix, if it is quantised as well.
    """

    weights: Mapping[str, NumberFormat]
    activations: NumberFormat | None = None
    kv: NumberFormat | None = None
    head: NumberFormat | None = None


def precision_of(values: Keys, where: str) -> tuple[Precision, tuple[str, ...]]:
    """Return the formats that a configuration states, and notes of what was assumed.

    Quantisation changes the matrices of layers; embedding, head and router stay as the configuration's dtype, as
    checkpoints have them.

    Raises:
        UserError: an unknown dtype, method or key of it, or a key that says what is not modelled.
    """
    named = values.get("dtype", values.get("torch_dtype"))
    notes: tuple[str, ...] = ()
    if named is None:
        base, notes = FORMATS["bf16"], ("dtype = bf16: left out",)
    elif isinstance(named, str) and named.removeprefix("torch.") in _DTYPES:
        base = FORMATS[_DTYPES[named.removeprefix("torch.")]]
    else:
        raise UserError(f"{where}: key 'dtype': found {named!r} against {', '.join(_DTYPES)}")
    found = values.get("quantization_config")
    if found is None:
        return uniform(base), notes
    if not isinstance(found, Mapping):
        raise UserError(f"{where}: key 'quantization_config': found {found!r} against a mapping")
    layers = values.get("num_hidden_layers", values.get("n_layer", 1))
    reader = _Reader(_flat(found), layers if isinstance(layers, int) else 1, where)
    stated = reader.stated()
    weights = {name: stated.weights.get(name, base) for name in MODULES}
    precision = replace(
        uniform(base),
        attention=weights["attention"],
        mlp=weights["mlp"],
        experts=weights["experts"],
        activations=stated.activations or base,
        kv=stated.kv or base,
        head=stated.head or base,
    )
    names = ", ".join(f"{name} {form.name}" for name, form in weights.items() if form is not base)
    return precision, (*notes, f"matrices of layers as configured ({reader.method}): {names or 'none'}")


def _flat(found: Keys) -> Keys:
    """Return the keys of a file of NVIDIA's, whose quantisation stands one level deeper, as those of the others."""
    inner = found.get("quantization")
    if "quant_method" in found or not isinstance(inner, Mapping):
        return found
    return {
        "quant_method": "modelopt",
        **{key: value for key, value in found.items() if key != "quantization"},
        **inner,
    }


class _Reader:
    """Reads the keys of one configuration; each is known, or an error that names it."""

    def __init__(self, keys: Keys, layers: int, where: str) -> None:
        self._keys, self._layers, self._where = keys, layers, where
        self.method = str(keys.get("quant_method"))
        if self.method not in READ:
            raise UserError(f"{where}: unknown quant_method {self.method!r} against {', '.join(READ)}")
        known = [
            "quant_method",
            "modules_to_not_convert",
            *READ[self.method].split(),
            *ABOUT_MAKING[self.method].split(),
        ]
        self._require_known(keys, known, "quantization_config")

    def stated(self) -> _Stated:
        """Return the formats.

        Raises:
            UserError: a key is missing or wrong.
        """
        match self.method:
            case "compressed-tensors":
                return self._grouped()
            case "modelopt":
                return self._modelopt()
            case "quark":
                return self._quark()
            case "torchao":
                return self._torchao()
            case "awq" | "gptq":
                return self._of_integers()
        return self._of_one_format()

    def _of_one_format(self) -> _Stated:
        match self.method:
            case "mxfp4":
                return self._of_all(FORMATS["mxfp4"], only=("experts",))
            case "fp8":
                return self._of_all(self._in_blocks(), _FP8, self._cache_scheme())
            case "fbgemm_fp8":
                return self._of_all(_FP8, _FP8)
            case "bitsandbytes":
                return self._of_all(self._bitsandbytes())
            case "hqq":
                params = self._mapping(self._mapping(self._keys, "quant_config"), "weight_quant_params")
                self._require_known(params, ("nbits", "group_size", "axis", "channel_wise", "optimize", "round_zero",
                                             "view_as_float"), "quant_config.weight_quant_params")  # fmt: skip
                return self._of_all(self._integers(params.get("nbits", 4), params.get("group_size", 64), _SCALE_BITS))
        raise InternalError(f"quant_method {self.method!r}: found no reader")

    def _of_integers(self) -> _Stated:
        bits = self._whole(self._keys.get("bits", 4), "bits")
        has_zeros = self._keys.get("zero_point", True) if self.method == "awq" else not self._keys.get("sym", True)
        form = self._integers(bits, self._keys.get("group_size", 128), bits if has_zeros else 0)
        if self._keys.get("dynamic"):
            raise self._unmodelled("dynamic", "formats of single modules")
        return replace(self._of_all(form), head=form if self._keys.get("lm_head") else None)

    # -- what several methods have

    def _of_all(
        self,
        form: NumberFormat,
        activations: NumberFormat | None = None,
        kv: NumberFormat | None = None,
        only: Sequence[str] = tuple(MODULES),
    ) -> _Stated:
        kept = self._kept()
        return _Stated({name: form for name in only if name not in kept}, activations, kv)

    def _kept(self) -> frozenset[str]:
        kept: frozenset[str] = frozenset()
        for key in LISTS:
            listed = self._keys.get(key)
            if listed is None:
                continue
            if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
                raise UserError(
                    f"{self._where}: key 'quantization_config.{key}': found {listed!r} against names of modules"
                )
            kept |= kept_classes(listed, self._layers, key, self._where)
        return kept

    def _in_blocks(self) -> NumberFormat:
        block = self._keys.get("weight_block_size")
        if block is None:
            return _FP8
        if not isinstance(block, list):
            raise self._wrong("weight_block_size", block, "two extents")
        area = 1
        for extent in block:
            area *= self._whole(extent, "weight_block_size")
        return NumberFormat("fp8", 8, group=area, scale_bits=_FP32)

    def _bitsandbytes(self) -> NumberFormat:
        if not self._keys.get("load_in_4bit"):
            return _INT8
        if self._keys.get("bnb_4bit_use_double_quant"):
            blocks = _BLOCKS_PER_DOUBLE
            return NumberFormat("int4", 4, group=64 * blocks, scale_bits=8 * blocks + _FP32)
        return NumberFormat("int4", 4, group=64, scale_bits=_FP32)

    def _integers(self, bits: object, group: object, zeros: int) -> NumberFormat:
        width = self._whole(bits, "bits")
        if group is None or group == -1:
            return NumberFormat(f"int{width}", width)
        return NumberFormat(f"int{width}", width, self._whole(group, "group_size"), _SCALE_BITS + zeros)

    # -- compressed-tensors

    def _grouped(self) -> _Stated:
        groups = self._mapping(self._keys, "config_groups")
        schemes = [self._mapping(groups, name) for name in groups]
        for scheme in schemes:
            self._require_known(scheme, ("format", "input_activations", "output_activations", "targets", "weights"),
                                "config_groups")  # fmt: skip
            if scheme.get("output_activations"):
                raise self._unmodelled("config_groups.output_activations", "quantised results")
        if not any(isinstance(scheme.get("weights"), Mapping) for scheme in schemes):
            raise UserError(f"{self._where}: key 'config_groups': found no weights in it")
        for key in ("sparsity_config", "transform_config"):
            if self._keys.get(key):
                raise self._unmodelled(key, "sparse or transformed weights")
        kept, weights = self._kept(), {}
        for name, modules in MODULES.items():
            if name in kept:
                continue
            forms = {self._form_of(module, schemes) for module in modules}
            if len(forms) > 1:
                raise self._unmodelled("config_groups", f"several formats of {name}")
            form = forms.pop()
            if form is not None:
                weights[name] = form
        return _Stated(weights, self._inputs_of(schemes), self._cache_scheme())

    def _inputs_of(self, schemes: Sequence[Keys]) -> NumberFormat | None:
        found = [self._scheme(scheme.get("input_activations")) for scheme in schemes]
        named = {form.name: FORMATS.get(form.name, form) for form in found if form is not None}
        if len(named) > 1:
            raise self._unmodelled("config_groups.input_activations", "several formats of activations")
        return next(iter(named.values()), None)

    def _form_of(self, module: str, schemes: Sequence[Keys]) -> NumberFormat | None:
        for scheme in schemes:
            targets = scheme.get("targets", ["Linear"])
            names = [str(one) for one in targets] if isinstance(targets, list) else []
            if "Linear" in names or is_listed(f"model.layers.0.{module}", names, self._where):
                return self._scheme(scheme.get("weights"))
        return None

    def _scheme(self, found: object) -> NumberFormat | None:
        """Return the format of ``{num_bits, type, group_size, …}``."""
        if found is None:
            return None
        if not isinstance(found, Mapping):
            raise self._wrong("config_groups", found, "a scheme")
        self._require_known(found, ("actorder", "block_structure", "dynamic", "group_size", "num_bits", "observer",
                                    "observer_kwargs", "scale_dtype", "strategy", "symmetric", "type", "zp_dtype"),
                            "config_groups.weights")  # fmt: skip
        bits = self._whole(found.get("num_bits"), "num_bits")
        kind = found.get("type", "int")
        group = found.get("group_size")
        block = found.get("block_structure")
        if found.get("strategy") == "block" and isinstance(block, list):
            group = 1
            for extent in block:
                group *= self._whole(extent, "block_structure")
        if kind == "int":
            return self._integers(bits, group, 0 if found.get("symmetric", True) else bits)
        if kind != "float":
            raise self._wrong("type", kind, "int or float")
        if group is None or group == -1:
            return NumberFormat(f"fp{bits}", bits)
        narrow = bits == 4  # FP4 in blocks: scales of 8 bits, NVFP4 by 16 and MXFP4 by 32
        words = self._whole(group, "group_size")
        name = {16: "nvfp4", 32: "mxfp4"}.get(words, "fp4") if narrow else f"fp{bits}"
        return NumberFormat(name, bits, words, 8 if narrow else _SCALE_BITS)

    def _cache_scheme(self) -> NumberFormat | None:
        form = self._scheme(self._keys.get("kv_cache_scheme"))
        return None if form is None else FORMATS.get(form.name, form)

    # -- NVIDIA's, AMD's and PyTorch's

    def _modelopt(self) -> _Stated:
        algorithm = self._keys.get("quant_algo")
        if algorithm is None and "config_groups" in self._keys:
            return self._grouped()
        if not isinstance(algorithm, str) or algorithm.upper() not in _MODELOPT:
            raise self._wrong("quant_algo", algorithm, f"one of {', '.join(_MODELOPT)}")
        weights, activations = _MODELOPT[algorithm.upper()]
        form = FORMATS[weights]
        group = self._keys.get("group_size")
        if group is not None and form.group:
            form = replace(form, group=self._whole(group, "group_size"))
        cache = self._keys.get("kv_cache_quant_algo")
        caches = {None: None, "FP8": _FP8, "NVFP4": FORMATS["nvfp4"], "INT8": _INT8}
        if cache not in caches:
            raise self._wrong("kv_cache_quant_algo", cache, "FP8, NVFP4, INT8")
        kv = caches[cache] if isinstance(cache, str) else self._cache_scheme()
        return self._of_all(form, FORMATS[activations] if activations else None, kv)

    def _quark(self) -> _Stated:
        for key in ("layer_quant_config", "layer_type_quant_config"):
            if self._keys.get(key):
                raise self._unmodelled(key, "formats of single layers")
        every = self._mapping(self._keys, "global_quant_config")
        self._require_known(
            every, ("bias", "input_tensors", "output_tensors", "target_device", "weight"), "global_quant_config"
        )
        if every.get("output_tensors"):
            raise self._unmodelled("global_quant_config.output_tensors", "quantised results")
        weights, inputs = self._spec(every.get("weight")), self._spec(every.get("input_tensors"))
        if weights is None:
            raise self._wrong("global_quant_config.weight", None, "a format")
        caches = self._keys.get("kv_cache_quant_config")
        kv = None
        if isinstance(caches, Mapping) and caches:
            specs = {self._spec(one.get("output_tensors")) for one in caches.values() if isinstance(one, Mapping)}
            kv = specs.pop() if len(specs) == 1 else None
            if kv is None:
                raise self._unmodelled("kv_cache_quant_config", "several formats of caches")
        return self._of_all(weights, None if inputs is None else FORMATS.get(inputs.name, inputs), kv)

    def _spec(self, found: object) -> NumberFormat | None:
        """Return the format of ``{dtype, group_size, …}``."""
        if found is None:
            return None
        if not isinstance(found, Mapping):
            raise self._wrong("global_quant_config", found, "one format")
        dtype, group = str(found.get("dtype")), found.get("group_size")
        if dtype.startswith(("fp8", "float8")):
            return _FP8 if group is None else NumberFormat("fp8", 8, self._whole(group, "group_size"), _SCALE_BITS)
        if dtype.startswith(("fp4", "float4")):
            return replace(FORMATS["mxfp4"], group=self._whole(32 if group is None else group, "group_size"))
        if dtype in ("int8", "uint8", "int4", "uint4"):
            bits = int(dtype[-1])
            return self._integers(bits, group, 0 if found.get("symmetric", True) else bits)
        raise self._wrong("dtype", dtype, "fp8, fp4, int8 or int4")

    def _torchao(self) -> _Stated:
        kind, kwargs = self._keys.get("quant_type"), self._keys.get("quant_type_kwargs") or {}
        if isinstance(kind, Mapping):
            self._require_known(kind, ("default",), "quant_type")
            inner = self._mapping(kind, "default")
            kind, kwargs = inner.get("_type"), inner.get("_data") or {}
        name = str(kind).replace("_", "").lower().removesuffix("config")
        if name not in _TORCHAO:
            raise self._wrong("quant_type", kind, "weight-only or dynamic types of 4 and 8 bits")
        if self._keys.get("include_input_output_embeddings"):
            raise self._unmodelled("include_input_output_embeddings", "a quantised embedding")
        bits, number, activations = _TORCHAO[name]
        group = kwargs.get("group_size", _TORCHAO_GROUPS.get(name)) if isinstance(kwargs, Mapping) else None
        zeros = _SCALE_BITS if name == "int4weightonly" else 0
        form = self._integers(bits, group, zeros) if number == "int" else _FP8
        return self._of_all(form, FORMATS[activations] if activations else None)

    # -- errors

    def _require_known(self, keys: Keys, known: Sequence[str], key: str) -> None:
        for name in keys:
            if name not in known:
                raise UserError(f"{self._where}: key {key!r}: unknown key {name!r}{nearest(str(name), known)}")

    def _mapping(self, keys: Keys, key: str) -> Keys:
        found = keys.get(key)
        if not isinstance(found, Mapping):
            raise self._wrong(key, found, "a mapping")
        return found

    def _whole(self, found: object, key: str) -> int:
        if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found <= 2**20:
            raise self._wrong(key, found, "a whole number")
        return found

    def _wrong(self, key: str, found: object, expected: str) -> UserError:
        return UserError(f"{self._where}: key 'quantization_config.{key}': found {found!r} against {expected}")

    def _unmodelled(self, key: str, what: str) -> UserError:
        return UserError(
            f"{self._where}: key 'quantization_config.{key}': {what}: not modelled (--dtype says what each class is in)"
        )
