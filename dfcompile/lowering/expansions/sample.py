"""The canonical Sample: interpolation between elements of a table, at places that are data."""

from dfcompile.lowering import CanonicalNode, MapFragment, expansion
from dfcompile.lowering.operators import Sample

_MOST_TASKS = 4096  # by default


@expansion(Sample, "map", source="onnx", default=True)
def sample(op: CanonicalNode[Sample], build: MapFragment) -> None:
    """One task in row order of the result, which reads X from memory and its places once per channel and row."""
    _add(op, build)


def _has_images(op: CanonicalNode[Sample]) -> bool:
    images, channels = op.output().shape[:2]
    return channels <= images <= _MOST_TASKS and images > 1


def _has_channels(op: CanonicalNode[Sample]) -> bool:
    images, channels = op.output().shape[:2]
    return images < channels <= _MOST_TASKS


@expansion(Sample, "images", source="onnx", default=_has_images)
def sample_per_image(op: CanonicalNode[Sample], build: MapFragment) -> None:
    """One task per batch of the data, the default where these are many: per channel of what a Resize resizes."""
    _add(op, build, "images", "b")


@expansion(Sample, "channels", source="onnx", default=_has_channels)
def sample_per_channel(op: CanonicalNode[Sample], build: MapFragment) -> None:
    """One task per channel, each of which reads X from memory and all places; the default where channels are more."""
    _add(op, build, "channels", "c")


def _add(op: CanonicalNode[Sample], build: MapFragment, step: str = "", *spatial: str) -> None:
    x, places, y = op.input(0), op.input(1), op.output()
    extents = dict(zip("bcprt", (*y.shape, places.shape[2]), strict=True))
    of_point = ["0" if places.shape[0] == 1 else "b", "p", "t"]
    reads = {"place": (places, of_point)}
    weights = op.optional_input(2)
    if weights is not None:
        reads["weight"] = (weights, of_point)
    element = f"table[b, c, (place + {x.shape[2]}) % {x.shape[2]}, r]"  # what is outside reads some other element
    if x.dtype == "float16":
        element = f"dace.float32({element})"
    code = f"{element if weights is None else f'weight * {element}'} if place >= 0 else 0"
    tasks, write = {name: extents.pop(name) for name in spatial}, (y, ["b", "c", "p", "r"])
    total = op.operator.reduction
    build.map(
        step, spatial=tasks, loops=extents, reads=reads, tables={"table": x}, write=write, code=code, accumulate=total
    )
