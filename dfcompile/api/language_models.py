"""Studies of language models from plain options: what ``dfcompile llm`` does."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from dfcompile.errors import InfeasibleError, UserError, nearest
from dfcompile.host.inputs import read_text
from dfcompile.host.reasons import reason_of
from dfcompile.host.stages import counted
from dfcompile.language_models.configuration.reading import read_configuration
from dfcompile.language_models.formats import number_format
from dfcompile.language_models.machines.finding import find_device
from dfcompile.language_models.notebook.kernels import notebook_model
from dfcompile.language_models.notebook.machine import notebook_machine
from dfcompile.language_models.notebook.printing import notebook_text
from dfcompile.language_models.parallel.degrees import Degrees
from dfcompile.language_models.parallel.offloading import NOTHING
from dfcompile.language_models.parallel.search import Aim
from dfcompile.language_models.steps.batch import (
    LARGEST,
    Batch,
    Sequences,
    chunked_batch,
    decode_batch,
    prefill_batch,
)
from dfcompile.language_models.steps.choices import Fusion, Latent, StepChoices
from dfcompile.language_models.study import Request, Study, study_of
from dfcompile.language_models.times.kernel_time import TimeModel
from dfcompile.language_models.times.step_time import Transfers
from dfcompile.options import read_options, takes
from dfcompile.options.language_models import LanguageOptions
from dfcompile.options.numbers import read_real, within
from dfcompile.records import replace
from dfcompile.report.plain_values import Json, rounded

MOST_CHIPS = 2**20
MOST_SWEPT = 64
_DEGREES = {"tp": "tensor", "sp": "sequence", "dp": "data", "pp": "pipeline", "ep": "expert", "mb": "micro_batches"}
_SWEPT = ("batch", "chips", "context", "dtype")


def request_of(asked: LanguageOptions) -> Request:
    """Return the request of a study.

    Raises:
        UserError: an option is not written as it should be, or no step is asked for.
    """
    time = asked.time or ("calibrated" if asked.efficiency else "roofline")
    fixed = None if asked.degrees is None else degrees_of(asked.degrees)
    return Request(
        config=asked.config,
        system=asked.system,
        batches=_batches(asked),
        chips=_chips(asked.chips) if fixed is None else (fixed.chips,),
        degrees=fixed,
        aim=Aim(asked.aim),
        dtypes=asked.dtype,
        choices=_choices(asked),
        time=TimeModel(time),
        efficiency=asked.efficiency,
        transfers=Transfers(asked.transfers),
        overlap=asked.overlap == "full",
        block=asked.kv_block,
        multiplies=tuple(number_format(name, "--multiplies").name for name in asked.multiplies.split(",")),
        oversubscribed=asked.allow_oversubscribed,
        offload=offload_of(asked.offload),
        usd_per_chip_hour=asked.usd_per_chip_hour,
        may_download=asked.allow_download,
    )


def offload_of(text: str) -> Fraction | None:
    """Return the share of caches of ``none``, ``auto`` or a number of 0 to 1.

    Raises:
        UserError: it is none of these.
    """
    if text in ("none", "auto"):
        return NOTHING if text == "none" else None
    share = read_real(text)
    if share is None or not 0 <= share <= 1:
        raise UserError(f"--offload: found {text[:40]!r} against none, auto or a share of 0 to 1")
    return share


def _choices(asked: LanguageOptions) -> StepChoices:
    return StepChoices(
        causal=asked.attention == "causal",
        flash=asked.scores == "chip",
        fusion=Fusion(asked.fusion),
        latent=Latent(asked.latent),
        shared_prefix=asked.shared_prefix,
        expert_shares=() if asked.expert_histogram is None else expert_shares(asked.expert_histogram),
    )


def _batches(asked: LanguageOptions) -> tuple[Batch, ...]:
    batches = (
        *(prefill_batch(text, all_rows=asked.head == "all") for text in asked.prefill),
        *(decode_batch(text) for text in asked.decode),
        *(chunked_batch(text) for text in asked.chunked),
    )
    if not batches:
        raise UserError("llm: found no step (give --prefill TOKENS, --decode CONTEXTxBATCH or --chunked …)")
    return batches


def degrees_of(text: str) -> Degrees:
    """Return the degrees of ``tp=8,ep=8``; what is not said is 1.

    Raises:
        UserError: an unknown word, one twice, or no whole number above 0.
    """
    found: dict[str, int] = {}
    for part in text.split(","):
        word, _, count = part.strip().partition("=")
        if word not in _DEGREES:
            raise UserError(f"--degrees: unknown degree {word!r}{nearest(word, _DEGREES)}")
        if _DEGREES[word] in found:
            raise UserError(f"--degrees: found {word!r} twice against once")
        found[_DEGREES[word]] = _positive("--degrees", count, MOST_CHIPS)
    made = Degrees(**found)
    if made.stage_chips % made.expert_group:
        raise UserError(
            f"--degrees: found experts over {made.expert_group} chips against a divisor of the {made.stage_chips} "
            "of a stage"
        )
    return made


def expert_shares(path: Path) -> tuple[float, ...]:
    """Read how often each expert was chosen: a JSON list, or numbers with blanks or commas between them.

    Raises:
        UserError: it cannot be read, or holds something else.
    """
    try:
        text = read_text(path, 2**24)
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "not a text file"
        raise UserError(f"--expert-histogram {str(path)!r}: cannot be read: {reason}") from error
    try:
        found = [float(word) for word in text.replace("[", " ").replace("]", " ").replace(",", " ").split()]
    except ValueError as error:
        raise UserError(f"--expert-histogram {str(path)!r}: found something else than numbers") from error
    if not found or not all(0 <= one < 1e300 for one in found) or sum(found) <= 0:
        raise UserError(f"--expert-histogram {str(path)!r}: found no numbers above 0")
    return tuple(found)


def swept(request: Request, text: str) -> Sequence[Mapping[str, Json]]:
    """Return one row per value and step of ``batch=1,2,4``: what the change brings; what does not fit says so.

    Raises:
        UserError: it is not written so.
    """
    change, _, listed = text.partition("=")
    values = [value.strip() for value in listed.split(",") if value.strip()]
    if change not in _SWEPT:
        raise UserError(f"--sweep: unknown change {change!r}{nearest(change, _SWEPT)}")
    if not 0 < len(values) <= MOST_SWEPT:
        raise UserError(f"--sweep: found {len(values)} values against 1 to {MOST_SWEPT}")
    rows: list[Mapping[str, Json]] = []
    for value in counted(values):
        rows += _swept_rows(_changed(request, change, value), change, value)
    return rows


def _swept_rows(request: Request, change: str, value: str) -> list[Mapping[str, Json]]:
    rows: list[Mapping[str, Json]] = []
    for batch in request.batches:
        row: dict[str, Json] = {"change": change, "value": value, "step": batch.name}
        try:
            step = study_of(replace(request, batches=(batch,))).steps[0]
        except InfeasibleError:
            empty = dict.fromkeys(("time_ms", "tokens_per_s", "per_sequence", "held_bytes"))
            rows.append({**row, **empty, "degrees": "does not fit", "assumptions": None})
            continue
        row |= {
            "time_ms": rounded(step.exec_s * 1e3),
            "tokens_per_s": rounded(step.tokens_per_s),
            "per_sequence": rounded(step.tokens_per_s_per_sequence),
            "held_bytes": step.deployment.held_bytes,
            "degrees": step.deployment.degrees.name,
            "assumptions": "; ".join(step.assumptions),
        }
        rows.append(row)
    return rows


def _changed(request: Request, change: str, value: str) -> Request:
    match change:
        case "chips":
            return replace(request, chips=_chips(value), degrees=None)
        case "dtype":
            return replace(request, dtypes=value)
    amount = _positive("--sweep", value, LARGEST)
    batches = tuple(replace(batch, groups=_resized(batch.groups, change, amount)) for batch in request.batches)
    return replace(request, batches=batches)


def _resized(groups: tuple[Sequences, ...], change: str, amount: int) -> tuple[Sequences, ...]:
    if change == "batch":
        return tuple(replace(group, count=amount) for group in groups)
    return tuple(replace(group, past=amount - 1) if group.decodes else replace(group, new=amount) for group in groups)


def notebook_page(asked: LanguageOptions) -> str:
    """Return what the notebook prints of a configuration and a machine.

    Raises:
        UserError: options that the notebook has not, or what it cannot read.
    """
    given = [name for name in ("prefill", "decode", "degrees") if getattr(asked, name)]
    if given:
        raise UserError(f"--compat notebook: found --{given[0]}, which its last cell has not (--chunked P:A:C sets it)")
    configuration = read_configuration(asked.config, may_download=asked.allow_download)
    model = notebook_model(configuration.values, configuration.where)
    device, _ = find_device(asked.system)
    sizes = [8192, 512, 256]
    if asked.chunked:
        words = asked.chunked[0].split(":")
        if len(words) != 3:
            raise UserError(f"--chunked: found {asked.chunked[0]!r} against PROMPT:ANSWER:CHUNK")
        sizes = [_positive("--chunked", word, 2**40) for word in words]
    return notebook_text(model, notebook_machine(device), *sizes)


@takes(LanguageOptions)
def studied(config: str, system: str, **options: Any) -> Study:
    """Study a language model from Python, with the options of the command line by their names.

    Raises:
        UserError: as `study_of`.
    """
    return study_of(request_of(read_options(LanguageOptions, {"config": config, "system": system, **options})))


def _chips(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(_positive("--chips", word, MOST_CHIPS) for word in text.split(",")))


def _positive(option: str, text: str, most: int) -> int:
    return within(1, most, "a whole number of {} to {}")(option, text.strip())
