"""Times fitted on public measurements: ``t0 + ((F / (ec peak))^p + M^p)^(1/p)`` per class of operators.

Memory takes ``M = (B + a A) / (em bw) + b n``: A are the bytes of activations that a kernel reads, which move again
where they are scaled first, and n its products after the first one, each of which starts anew.

A class is a kind of work, or a kind of work and the number format of its second operand. A kernel of a class that was
not measured has the time of the roofline.
"""

import json
import math
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path

from msgspec import Struct

from dfcompile.errors import UserError, nearest
from dfcompile.host.inputs import parsed_json, read_text
from dfcompile.host.printable import reason_of
from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.steps.kernel import Kernel, Work
from dfcompile.language_models.times.step_time import KernelTime, roofline, slower_of

LARGEST_BYTES = 2**20
CLASSES = tuple(work for work in Work if work is not Work.TRANSFER)
NOT_CLASSES = ("all_reduce", "source", "error")
_PACKAGE = "dfcompile.language_models.times"


class Efficiency(Struct, frozen=True):
    """Parameters of a class of operators.

    Attributes:
        compute: of the peak rate.
        memory: of the bandwidth.
        start_s: of every kernel.
        norm: 1: computing and traffic one after the other; large: beside each other.
        again: how often activations that are read move besides, as before a product in FP8 that scales them.
        product_s: of every product after the first, such as a head of keys of a sequence, or an expert.
    """

    compute: float
    memory: float
    start_s: float
    norm: float
    again: float = 0.0
    product_s: float = 0.0


class AllReduce(Struct, frozen=True):
    """``start + hop (p - 1) + 2 (p - 1) / p n / bandwidth``, where every chip sums a part and all get it.

    Small amounts may have a faster way, on which every chip reads what all others have: ``direct`` has its start, hop
    and bandwidth in ``start + hop (p - 1) + (p - 1) n / bandwidth``.
    """

    start_s: float
    hop_s: float
    bytes_per_s: float
    direct: tuple[float, float, float] | None = None

    def seconds(self, chips: int, amount_bytes: float) -> float:
        """Seconds of an all-reduce of so many bytes over so many chips."""
        others = chips - 1
        taken = self.start_s + self.hop_s * others + 2 * others / chips * amount_bytes / self.bytes_per_s
        if self.direct is None:
            return taken
        start_s, hop_s, bytes_per_s = self.direct
        return min(taken, start_s + hop_s * others + others * amount_bytes / bytes_per_s)


class Calibration(Struct, frozen=True):
    """Efficiencies of a device, where they come from and how far off they were."""

    name: str
    classes: Mapping[str, Efficiency]
    all_reduce: AllReduce | None
    source: str
    error: str

    def efficiency(self, kernel: Kernel) -> Efficiency | None:
        """Return the parameters of a kernel's class; none: it was not measured."""
        work = Work.VECTOR if kernel.work is Work.TRANSFER else kernel.work
        return self.classes.get(f"{work} {kernel.stored}", self.classes.get(work))

    def seconds(self, kernel: Kernel, device: Device) -> KernelTime:
        """Return the time of a kernel; of a class that was not measured that of the roofline.

        Raises:
            UserError: the device has no rate for the kernel's number format.
        """
        fitted = self.efficiency(kernel)
        if fitted is None:
            return roofline(kernel, device)
        moved = kernel.bytes + fitted.again * kernel.act_in_bytes
        memory = moved / (fitted.memory * device.bytes_per_s) + fitted.product_s * (kernel.batch * kernel.distinct - 1)
        if kernel.is_async:
            return slower_of(0.0, memory, is_async=True)
        compute = kernel.macs / (fitted.compute * device.rate(kernel.rate)) if kernel.macs else 0.0
        one = slower_of(compute, memory)
        longest = one.exec_s
        if longest > 0:  # divided by the longest, so that no power overflows
            scaled = (compute / longest) ** fitted.norm + (memory / longest) ** fitted.norm
            longest *= scaled ** (1 / fitted.norm)
        return KernelTime(compute, memory, fitted.start_s * kernel.launches + longest, one.bound)

    def not_measured(self, kernels: Iterable[Kernel]) -> tuple[str, ...]:
        """Return the classes of some kernels that have the time of the roofline."""
        names = (f"{kernel.work} {kernel.stored}".strip() for kernel in kernels if self.efficiency(kernel) is None)
        return tuple(sorted(set(names)))


def find_calibration(asked: str) -> Calibration:
    """Return the calibration of a shipped name, or of a JSON file of the same form.

    Raises:
        UserError: there is none, or its file is wrong.
    """
    shipped = json.loads(files(_PACKAGE).joinpath("calibration.json").read_text(encoding="utf-8"))
    if asked in shipped:
        return _calibration(asked, shipped[asked], asked)
    path = Path(asked)
    if not path.is_file():
        raise UserError(f"--efficiency: no such file or calibration {asked!r}{nearest(asked, shipped)}")
    try:
        document = parsed_json(read_text(path, LARGEST_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error).splitlines()[0]
        raise UserError(f"calibration {asked!r}: cannot be read: {reason}") from error
    return _calibration(path.stem, document, asked)


def _calibration(name: str, document: object, where: str) -> Calibration:
    if not isinstance(document, dict) or not document:
        raise UserError(f"calibration {where!r}: found no keys against {', '.join(CLASSES)}")
    classes = {}
    for key in (key for key in document if key not in NOT_CLASSES):
        if key.partition(" ")[0] not in CLASSES:
            raise UserError(f"calibration {where!r}: unknown class {key!r}{nearest(key, CLASSES)}")
        compute, memory, start_us, norm, *beside = found = _numbers(document, key, (4, 6), where)
        again, product_ns = beside or (0.0, 0.0)
        if not (0 < compute <= 1 and 0 < memory <= 1 and min(start_us, again, product_ns) >= 0 and norm >= 1):
            expected = "shares of at most 1, microseconds, a norm of at least 1, passes and nanoseconds"
            raise UserError(f"calibration {where!r}: key {key!r}: found {found} against {expected}")
        classes[key] = Efficiency(compute, memory, start_us * 1e-6, norm, again, product_ns * 1e-9)
    reduces = None
    if "all_reduce" in document:
        ways = []
        numbers = _numbers(document, "all_reduce", (3, 6), where)
        for start_us, hop_us, gb_per_s in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
            if start_us < 0 or hop_us < 0 or gb_per_s <= 0:
                raise UserError(f"calibration {where!r}: key 'all_reduce': found a number below 0")
            ways.append((start_us * 1e-6, hop_us * 1e-6, gb_per_s * 1e9))
        reduces = AllReduce(*ways[0], *ways[1:])
    source, error = str(document.get("source", where)), str(document.get("error", "not stated"))
    return Calibration(name, classes, reduces, source, error)


def _numbers(document: Mapping[str, object], key: str, counts: tuple[int, int], where: str) -> list[float]:
    found = document.get(key)
    numbers = [one for one in found if isinstance(one, int | float)] if isinstance(found, list) else []
    is_whole = isinstance(found, list) and len(found) == len(numbers) and len(found) in counts
    if not is_whole or not all(map(math.isfinite, numbers)):
        expected = " or ".join(map(str, counts))
        raise UserError(f"calibration {where!r}: key {key!r}: found {found!r} against {expected} numbers")
    return [float(one) for one in numbers]
