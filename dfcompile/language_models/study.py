"""A study: a model, a device and steps become figures."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from fractions import Fraction

from msgspec import Struct, field

from dfcompile.errors import InfeasibleError, UserError
from dfcompile.host.stages import counted
from dfcompile.language_models.configuration.reading import model_of, read_configuration
from dfcompile.language_models.energy import Energy, energy_of, is_known
from dfcompile.language_models.footprint import (
    Parameters,
    encoder_kv_elements,
    kv_elements_per_token,
    parameters_of,
    state_bytes_per_sequence,
    weight_bytes,
)
from dfcompile.language_models.formats import Precision, number_format, with_dtypes
from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.machines.finding import find_device
from dfcompile.language_models.model import Experts, LatentAttention, Model, with_encoder, with_formats
from dfcompile.language_models.parallel.degrees import Degrees, Impossible, all_degrees
from dfcompile.language_models.parallel.deployment import NOTHING, Case, Deployment, Deployments
from dfcompile.language_models.quantisation.precision import precision_of
from dfcompile.language_models.steps.batch import Batch
from dfcompile.language_models.steps.kernel import StepChoices
from dfcompile.language_models.steps.step import step_of
from dfcompile.language_models.times.calibrated import AllReduce, Calibration, find_calibration
from dfcompile.language_models.times.step_time import TimeModel, Timer, Transfers, roofline
from dfcompile.language_models.times.tiled import bound, tiled
from dfcompile.options.language_models import LanguageOptions
from dfcompile.records import replace


class Aim(StrEnum):
    """What is to be small."""

    TIME = "time"  # of the step
    COST = "cost"  # chips times time
    ENERGY = "energy"  # of all chips


class Found(Struct, frozen=True):
    """The best deployment, and how many degrees were looked at and were not possible."""

    best: Deployment
    tried: int
    infeasible: int


def best_degrees(case: Case, chips: tuple[int, ...], aim: Aim = Aim.TIME, fixed: Degrees | None = None) -> Found:
    """Return the deployment of the least time, or cost, on one of some numbers of chips; ties go to fewer groups.

    Raises:
        UserError: energy is to be small, and the device does not say what costs any.
        InfeasibleError: no degrees are possible; the message is that of those that need least.
    """
    if aim is Aim.ENERGY and not is_known(case.device):
        where = f"system {case.device.name!r}"
        raise UserError(f"--aim energy: found no energies of {where} (energy.mac.FORMAT and others)")
    experts, layers, sequences = case.model.most_experts, len(case.model.layers), case.batch.sequences
    best: tuple[tuple[float, ...], Deployment] | None = None
    impossible, tried = Impossible(), 0
    for count in counted(chips):
        deployments = Deployments(case, count)
        choices = all_degrees(count, experts=experts, layers=layers, sequences=sequences)
        for degrees in counted((fixed,) if fixed is not None else tuple(choices)):
            tried += 1
            with impossible:
                one = deployments.deployed(degrees)
                key = order(one, aim, case.device)
                if best is None or key < best[0]:
                    best = key, one
    if best is None:
        raise impossible.error
    return Found(best[1], tried, impossible.count)


def order(one: Deployment, aim: Aim, device: Device) -> tuple[float, ...]:
    """Return what deployments are compared by."""
    degrees, measure, parts = one.degrees, one.exec_s, one.degrees.micro_batches
    if aim is Aim.COST:
        measure *= degrees.chips
    elif aim is Aim.ENERGY:
        measure = energy_of(one.kernels, device, one.exec_s, degrees.chips, parts, one.link_bytes).total_j
    return measure, degrees.pipeline, degrees.sequence, degrees.expert, degrees.tensor, degrees.data, parts


class Request(Struct, frozen=True):
    """What is asked.

    Attributes:
        options: of ``dfcompile llm``; what those mean that are read further stands in the other fields.
        batches: one per step.
        chips: numbers of chips that may be used.
        degrees: of parallelism; none: searched.
        choices: how steps are counted.
        offload: share of caches in a memory beside the chip's own; None: as little as lets a step fit.
    """

    options: LanguageOptions
    batches: tuple[Batch, ...]
    chips: tuple[int, ...] = (1,)
    degrees: Degrees | None = None
    choices: StepChoices = field(default_factory=StepChoices)
    offload: Fraction | None = NOTHING

    @property
    def time(self) -> TimeModel:
        """By which the search and the table count."""
        return TimeModel(self.options.time or ("calibrated" if self.options.efficiency else "roofline"))


OTHER_PREFILLS = "prefills of other users are not counted"


class StepStudy(Struct, frozen=True):
    """A step and its figures.

    Attributes:
        batch: of the step.
        deployment: that was chosen, with its time.
        exec_s: of the step: the deployment's, or more if the power is limited.
        times: of the same deployment under each way of counting.
        tried: degrees that were looked at.
        infeasible: of them.
        macs: of the step, on all chips together.
        weight_bytes: that the whole model reads in the step.
        energy: if the device says what costs energy.
        usd_per_million_tokens: 0 where no price is known.
        chunk_s: of each step that fills in a prompt, with the same degrees; none where the step is not of these.
    """

    batch: Batch
    deployment: Deployment
    exec_s: float
    times: Mapping[TimeModel, float]
    tried: int
    infeasible: int
    macs: int
    weight_bytes: int
    energy: Energy | None
    usd_per_million_tokens: float
    chunk_s: tuple[float, ...]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What its time rests on: between two steps of decodes a server also reads the prompts of other users."""
        return (OTHER_PREFILLS,) if self.batch.is_decode else ()

    @property
    def tokens_per_s(self) -> float:
        """Of all sequences: tokens that the step takes in or makes."""
        return self.batch.tokens / self.exec_s

    @property
    def tokens_per_s_per_sequence(self) -> float:
        """Of one sequence in the mean."""
        return self.tokens_per_s / self.batch.sequences


class Study(Struct, frozen=True):
    """A model on a device, step by step.

    Attributes:
        kv_bytes_per_token: of caches of keys and values, which grow with every token.
        state_bytes_per_sequence: of recurrent mixers, however long a sequence is.
    """

    request: Request
    model: Model
    parameters: Parameters
    precision: Precision
    device: Device
    weight_bytes: int
    kv_bytes_per_token: int
    state_bytes_per_sequence: int
    encoder_kv_bytes: int  # per sequence; 0 without an encoder
    steps: tuple[StepStudy, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def study_of(request: Request) -> Study:
    """Study a model.

    Raises:
        UserError: configuration, device, formats or steps are wrong.
        InfeasibleError: a step fits on no degrees; the message has the largest batch that would.
    """
    asked = request.options
    configuration = read_configuration(asked.config, may_download=asked.allow_download)
    model = _with_encoder(model_of(configuration), asked)
    precision, notes = precision_of(configuration.values, model, configuration.where)
    rated = tuple(number_format(name, "--multiplies").name for name in asked.multiplies.split(","))
    device, warnings = find_device(asked.system, rated)
    stated = precision.activations
    if stated.name not in device.macs_per_s and stated != precision.vectors:
        # Weights alone are then as configured, as servers run such a checkpoint there.
        precision = replace(precision, activations=precision.vectors)
        notes = (*notes, f"activations in {precision.activations.name}: {device.name} has no rate for {stated.name}")
    if configuration.towers:
        towers = ", ".join(configuration.towers)
        warnings = (*warnings, f"{configuration.where}: {towers}: left out, the text model alone is counted")
    if asked.dtype:
        precision, notes = with_dtypes(precision, asked.dtype), ()
    model = with_formats(model, precision.layers)
    precision = replace(precision, mixed=frozenset(device.macs_per_s))
    _check(model, device, request)
    calibration = find_calibration(asked.efficiency) if asked.efficiency else None
    cases = (_case(request, model, device, precision, calibration, batch) for batch in counted(request.batches))
    steps = tuple(_step(request, case, calibration) for case in cases)
    return Study(
        request=request,
        model=model,
        parameters=parameters_of(model),
        precision=precision,
        device=device,
        weight_bytes=weight_bytes(model, precision),
        kv_bytes_per_token=precision.kv.bytes_of(kv_elements_per_token(model)),
        state_bytes_per_sequence=state_bytes_per_sequence(model, precision),
        encoder_kv_bytes=precision.kv.bytes_of(encoder_kv_elements(model)),
        steps=steps,
        notes=(*model.notes, *_of_layers(model), *notes, *device.notes, *_notes(request, device, calibration, steps)),
        warnings=warnings,
    )


def check_has_no_encoder(model: Model, option: str) -> None:
    """Check that a model has no encoder, which an option does not count.

    Raises:
        UserError: it has one.
    """
    if model.encoder_tokens:
        found = f"{model.model_type!r}, whose layers attend to an encoder"
        raise UserError(f"{option}: found {found}, against a decoder alone")


def _with_encoder(model: Model, asked: LanguageOptions) -> Model:
    """Return a model with as many tokens of its encoder as were asked for, at most what its configuration says.

    Raises:
        UserError: there is no encoder, it has fewer tokens, or something is asked for that counts decoders alone.
    """
    for name in ("serve", "train", "map", "shared_prefix"):
        if getattr(asked, name):
            check_has_no_encoder(model, f"--{name.replace('_', '-')}")
    if asked.train and not model.has_simple_ends:
        found = f"{model.model_type!r}, which has more before and after its layers"
        raise UserError(f"--train: found {found}, against an embedding and a head")
    if asked.train and any(isinstance(one, LatentAttention) and one.chosen for one in model.attentions):
        raise UserError(f"--train: found {model.model_type!r}, whose layers attend to chosen tokens, against all")
    tokens, most = asked.encoder_tokens, model.most_encoded
    if tokens is None:
        return model
    if not model.encoder_tokens:
        raise UserError(f"--encoder-tokens: found {tokens} against {model.name}, which attends to no encoder")
    if most and tokens > most:
        raise UserError(f"--encoder-tokens: found {tokens} against at most {most} of {model.name}")
    return with_encoder(model, tokens)


def case_of(study: Study, batch: Batch) -> Case:
    """Return the case of a batch that is no step of a study, counted as its steps are."""
    efficiency = study.request.options.efficiency
    calibration = find_calibration(efficiency) if efficiency else None
    return _case(study.request, study.model, study.device, study.precision, calibration, batch)


def _case(
    request: Request, model: Model, device: Device, precision: Precision, calibration: Calibration | None, batch: Batch
) -> Case:
    asked = request.options
    held = replace(device, capacity_bytes=0) if asked.allow_oversubscribed else device
    how = *counting(request.time, calibration), Transfers(asked.transfers), asked.kv_block, request.offload
    return Case(model, batch, held, precision, request.choices, *how)


def _check(model: Model, device: Device, request: Request) -> None:
    """Check that contexts are within what the model was made for, and that a histogram is of its experts.

    A device has to say the bandwidth of the memory to which caches are to be offloaded.
    """
    most = model.most_context
    for batch in request.batches:
        if most and batch.longest > most:
            found = f"a context of {batch.longest} tokens against at most {most} of {model.name}"
            raise UserError(f"{batch.name}: found {found}")
    shares = request.choices.expert_shares
    counts = {layer.mlp.count for layer in model.layers if isinstance(layer.mlp, Experts)}
    if shares and counts != {len(shares)}:
        raise UserError(f"--expert-histogram: found {len(shares)} experts against {sorted(counts) or 'none'}")
    if request.time is TimeModel.CALIBRATED and not request.options.efficiency:
        raise UserError("--time calibrated: found no --efficiency, which says by what")
    if request.offload != NOTHING and device.offload is None:
        raise UserError(f"--offload: found no offload.bandwidth of system {device.name!r}")


def counting(time: TimeModel, calibration: Calibration | None) -> tuple[Timer, AllReduce | None]:
    """Return how kernels are timed under a way of counting, and all-reduces if they were measured."""
    if time is TimeModel.CALIBRATED:
        assert calibration is not None
        return calibration.seconds, calibration.all_reduce
    return {TimeModel.BOUND: bound, TimeModel.ROOFLINE: roofline, TimeModel.TILING: tiled}[time], None


def _step(request: Request, case: Case, calibration: Calibration | None) -> StepStudy:
    batch, device = case.batch, case.device
    found = best_degrees(case, request.chips, Aim(request.options.aim), request.degrees)
    best, degrees = found.best, found.best.degrees
    exec_s = best.kernels.overlap_s if request.options.overlap == "full" and degrees.chips == 1 else best.exec_s
    energy = None
    if is_known(device):
        energy = energy_of(best.kernels, device, exec_s, degrees.chips, degrees.micro_batches, best.link_bytes)
        exec_s = energy.exec_s
    whole = step_of(case.model, batch, case.precision, case.choices)
    hours = exec_s * degrees.chips / 3600
    return StepStudy(
        batch=batch,
        deployment=best,
        exec_s=exec_s,
        times=_times(case, degrees, calibration),
        tried=found.tried,
        infeasible=found.infeasible,
        macs=whole.macs,
        weight_bytes=whole.total("weight_bytes"),
        energy=energy,
        usd_per_million_tokens=request.options.usd_per_chip_hour * hours / batch.tokens * 1e6,
        chunk_s=tuple(_deployed(replace(case, batch=chunk), degrees) for chunk in batch.chunks),
    )


def _deployed(case: Case, degrees: Degrees) -> float:
    return Deployments(case, degrees.chips).deployed(degrees).exec_s


def _times(case: Case, degrees: Degrees, calibration: Calibration | None) -> dict[TimeModel, float]:
    """Return the time of a deployment under each way of counting; a tiling that does not fit has none."""
    found: dict[TimeModel, float] = {}
    for way in (way for way in TimeModel if way is not TimeModel.CALIBRATED or calibration is not None):
        timer, fitted = counting(way, calibration)
        try:
            found[way] = _deployed(replace(case, timer=timer, fitted=fitted), degrees)
        except InfeasibleError:
            if way is not TimeModel.TILING:
                raise
    return found


def _of_layers(model: Model) -> Iterator[str]:
    if tokens := model.encoder_tokens:
        yield (
            f"encoder: not counted, neither its parameters nor its time; each sequence attends to {tokens} tokens "
            "of it (--encoder-tokens), whose keys and values are made and cached in the step that begins the sequence"
        )
    if model.mixers:
        yield "mixers: states and the convolution's last tokens are read and written once per step, kept per sequence"
    if any(mixer.chunk for mixer in model.mixers):
        yield "mixers: a prompt is counted in chunks, between which states stay on the chip"
    if any(mixer.key_dim and mixer.state is not None for mixer in model.mixers):
        yield "mixers: states are in fp32, as transformers holds them"


def _notes(
    request: Request, device: Device, calibration: Calibration | None, steps: tuple[StepStudy, ...]
) -> Iterator[str]:
    yield from (note for batch in request.batches for note in batch.notes)
    yield "rotations, norms of queries and keys, and the last norm are part of the products beside them"
    yield "experts: routing is independent from token to token; weights are those of the expected number of experts"
    yield "bound: the least traffic of any tiling at the capacity of each memory on the chip, at peak rates"
    if any(batch.is_decode for batch in request.batches):
        yield f"time per output token: {OTHER_PREFILLS} (--chunked counts steps with a piece of a prompt)"
    if calibration is not None:
        yield f"calibrated by {calibration.name}: {calibration.error}; {calibration.source}"
        kernels = (one.kernel for step in steps for one in step.deployment.kernels.kernels)
        if left := calibration.not_measured(kernels):
            yield f"roofline, for {calibration.name} has no measurements: {', '.join(left)}"
    if not device.capacity_bytes:
        yield f"system {device.name}: its memory's capacity is not known: nothing was checked against it"
    if request.options.allow_oversubscribed:
        yield "--allow-oversubscribed: nothing was checked against the memory's capacity"
    if request.offload != NOTHING:
        yield (
            "--offload: every layer's cache lies partly behind a link of its own; what crosses it passes the chip's "
            "memory once, as all that a kernel reads; weights stay"
        )
    if request.options.overlap == "full":
        yield "--overlap full: the times of one chip are the larger of all computing and all bytes, a bound"
    if not is_known(device):
        yield f"system {device.name}: it gives no energies, so that there are no figures of energy"
