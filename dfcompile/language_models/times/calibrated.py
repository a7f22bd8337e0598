"""Times fitted on public measurements: ``t0 + ((F / (ec peak))^p + (B / (em bw))^p)^(1/p)`` per class of operators.

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
    """

    compute: float
    memory: float
    start_s: float
    norm: float


class AllReduce(Struct, frozen=True):
    """``start + hop (p - 1) + 2 (p - 1) / p n / bandwidth``."""

    start_s: float
    hop_s: float
    bytes_per_s: float

    def seconds(self, chips: int, amount_bytes: float) -> float:
        """Seconds of an all-reduce of so many bytes over so many chips."""
        return self.start_s + self.hop_s * (chips - 1) + 2 * (chips - 1) / chips * amount_bytes / self.bytes_per_s


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
        memory = kernel.bytes / (fitted.memory * device.bytes_per_s)
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
        compute, memory, start_us, norm = found = _numbers(document, key, 4, where)
        if not (0 < compute <= 1 and 0 < memory <= 1 and start_us >= 0 and norm >= 1):
            expected = "shares of at most 1, microseconds and a norm of at least 1"
            raise UserError(f"calibration {where!r}: key {key!r}: found {found} against {expected}")
        classes[key] = Efficiency(compute, memory, start_us * 1e-6, norm)
    reduces = None
    if "all_reduce" in document:
        start_us, hop_us, gb_per_s = _numbers(document, "all_reduce", 3, where)
        if start_us < 0 or hop_us < 0 or gb_per_s <= 0:
            raise UserError(f"calibration {where!r}: key 'all_reduce': found a number below 0")
        reduces = AllReduce(start_us * 1e-6, hop_us * 1e-6, gb_per_s * 1e9)
    source, error = str(document.get("source", where)), str(document.get("error", "not stated"))
    return Calibration(name, classes, reduces, source, error)


def _numbers(document: Mapping[str, object], key: str, count: int, where: str) -> list[float]:
    found = document.get(key)
    numbers = [one for one in found if isinstance(one, int | float)] if isinstance(found, list) else []
    if not isinstance(found, list) or not len(found) == len(numbers) == count or not all(map(math.isfinite, numbers)):
        raise UserError(f"calibration {where!r}: key {key!r}: found {found!r} against {count} numbers")
    return [float(one) for one in numbers]
