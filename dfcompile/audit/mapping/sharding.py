"""The audit of how chips hold what kernels read and write."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from dfcompile.audit.comparing import expect, expect_text
from dfcompile.audit.mapping.array_shares import layout_of, most_elements
from dfcompile.audit.mapping.times import TaskTimes
from dfcompile.driver import Point
from dfcompile.report.mapping_figures import LayoutSummary


class _Held(Struct, frozen=True):
    configuration: int
    kernel: str
    tensor: str
    access: str
    elements: int
    chip_elements: int


def audit_sharding(where: str, summaries: Sequence[LayoutSummary], point: Point, times: TaskTimes) -> None:
    """Find anew which part of an array the chip with most of it holds, for each kernel that reads or writes it.

    Raises:
        VerificationError: naming the figure, as found and as recomputed.
    """
    expected = sorted(_layouts(point, times), key=lambda held: held.configuration)
    expect(f"{where}: their number", len(summaries), len(expected))
    dimensions = len(point.attained.system.network.dimensions)
    for number, (summary, held) in enumerate(zip(summaries, expected, strict=True)):
        at = f"{where}[{number}]"
        expect(f"{at}.configuration", summary.configuration, held.configuration)
        expect_text(f"{at}.kernel", summary.kernel, held.kernel)
        expect_text(f"{at}.tensor", summary.tensor, held.tensor)
        expect_text(f"{at}.access", summary.access, held.access)
        expect(f"{at}.held: dimensions", len(summary.held), dimensions)
        expect(f"{at}.elements", summary.elements, held.elements)
        expect(f"{at}.chip_elements", summary.chip_elements, held.chip_elements)


def _layouts(point: Point, times: TaskTimes) -> Iterator[_Held]:
    attained, dag = point.attained, point.variant.dag
    if attained.chips == 1:
        return
    chips = tuple(dimension.chips for dimension in attained.system.network.dimensions)
    place = {name: times.configuration_of(name) for name in times.names}
    sharding, elements = dict(attained.sharding), {tensor.name: tensor.elements for tensor in dag.tensors}
    for kernel in dag.kernels:
        if kernel.name not in place or kernel.name not in sharding:
            continue
        for access, is_result, arrays in (("read", False, kernel.inputs), ("written", True, kernel.outputs)):
            for number, array in enumerate(arrays):
                layout = layout_of(kernel, number, sharding[kernel.name], chips, is_result=is_result)
                size = elements[array]
                most = most_elements(layout, size)
                yield _Held(place[kernel.name], kernel.name, array, access, size, most)
