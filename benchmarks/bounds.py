"""CPU seconds of I/O bounds, beside the tool's that enumerates mappings: 69 curves, all figures, whole models.

Models are ResNet-50, and those that are named: ``python -m benchmarks.bounds [MODEL.onnx…]``.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.measurement import ROOT, save
from dfcompile.api.bound_traffic import DEFAULT_BUFFERS, bound_operators
from dfcompile.frontend import ReadOptions, read_model
from dfcompile.io_bounds.curve import Rules, Tiles
from dfcompile.io_bounds.einsum.convolution import Convolution, convolution_curve
from dfcompile.io_bounds.einsum.plain import PlainEinsum, gemm, plain_curve
from dfcompile.io_bounds.einsum.window import WindowAxis
from dfcompile.io_bounds.operators import BoundedModel
from dfcompile.operator_shapes import bounded_model
from tests.unit.io_bounds.published_curves import crossed_product, published

TOOL_CPU_S = 7_403.0  # of the 69 curves on such a machine
AS_THE_TOOL = Rules(Tiles.DIVISORS)
Shape = PlainEinsum | Convolution


@dataclass(frozen=True, slots=True)
class BoundsMeasurement:
    """CPU seconds within the process."""

    name: str
    curves: int
    cpu_s: float
    cpu_s_limit: float
    tool_cpu_s: float | None


def figures() -> list[Shape]:
    """Return the 54 shapes of Figures 1 and 10 to 14 [huang24]; those that several figures have, as often."""
    shapes: list[Shape] = [gemm(16384, 1024, 1024)]
    sizes = [2048, 2048, 2048]
    shapes.append(gemm(*sizes))
    for step in range(6):
        sizes[2 - step % 3] *= 2
        shapes.append(gemm(*sizes))
    extents = (2048, 4096, 8192)
    shapes += [gemm(m, k, n) for m in extents for k in extents for n in extents]
    for taps, stride, dilation in ((1, 1, 1), (3, 1, 1), (5, 1, 1), (3, 2, 1), (3, 1, 2)):
        axis = WindowAxis(16, taps, stride, dilation)
        shapes.append(Convolution(1, 1, 64, 64, (axis, axis)))
    shapes += [crossed_product(2**power, 1, 4096, 4096 >> power, 4096) for power in range(8)]
    shapes += [crossed_product(32, 2**power, 4096, 128, 4096) for power in range(6)]
    return shapes


def curve(shape: Shape, rules: Rules) -> None:
    """Compute the curve of a shape."""
    if isinstance(shape, PlainEinsum):
        plain_curve(shape, rules)
    else:
        convolution_curve(shape, rules)


def models(files: Sequence[Path]) -> Iterator[BoundsMeasurement]:
    """Measure all curves of models, and then all that the command says of them; reading them is not counted."""
    for file in files:
        bounded = bounded_model(read_model(file, ReadOptions()).program)
        count, sizes = len(bounded.operators), DEFAULT_BUFFERS
        yield measured(f"{file.stem}, curves", count, 2.0, partial(all_operators, bounded), None)
        yield measured(f"{file.stem}, rest", count, 2.0, partial(bound_operators, bounded, sizes, Rules()), None)


def all_operators(model: BoundedModel) -> None:
    """Compute the curves of all operators of a model."""
    for op in model.operators:
        op.curve(Rules())


def measured(name: str, count: int, limit: float, run: Callable[[], object], tool: float | None) -> BoundsMeasurement:
    """Return the CPU seconds of a run."""
    before = time.process_time()
    run()
    return BoundsMeasurement(name, count, round(time.process_time() - before, 3), limit, tool)


def curves(shapes: Sequence[Shape]) -> Callable[[], None]:
    """Return what computes the curves of shapes as the tool has them."""

    def run() -> None:
        for shape in shapes:
            curve(shape, AS_THE_TOOL)

    return run


def main() -> int:
    """Measure, print, save; return 1 if a limit is not kept."""
    recorded = [case.shape for case in published("fronts.txt")]
    files = [ROOT / "benchmarks" / "models" / "resnet_50.py", *map(Path, sys.argv[1:])]
    found = [
        measured("recorded curves", len(recorded), 1.0, curves(recorded), TOOL_CPU_S),
        measured("shapes of figures", len(figures()), 2.0, curves(figures()), None),
        *models(files),
    ]
    for each in found:
        sys.stdout.write(f"{each.name:24} {each.curves:4} curves {each.cpu_s:8.3f} CPU s (limit {each.cpu_s_limit})\n")
    sys.stdout.write(f"{json.dumps(str(save('bounds', found)))}\n")
    return int(any(each.cpu_s > each.cpu_s_limit for each in found))


if __name__ == "__main__":
    sys.exit(main())
