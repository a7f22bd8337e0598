"""A study of a language model as plain values: JSON, and the rows of CSV; integers stay exact."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Final

from dfcompile.host.printable import json_text
from dfcompile.language_models.energy import Activity, activity, link_activity, step_activity
from dfcompile.language_models.study import StepStudy, Study
from dfcompile.language_models.times.step_time import TimedKernel
from dfcompile.records import replace
from dfcompile.report.plain_values import Json, rounded

Record = dict[str, Json]


_OF_KERNEL = (
    "name", "part", "count", "m", "k", "n", "batch", "macs", "weight_bytes", "act_in_bytes", "act_out_bytes",
    "kv_read_bytes", "kv_write_bytes", "offload_bytes", "bytes", "vector_elements",
)  # fmt: skip
FORMAT: Final = "dfcompile-language-model/1"


def study_json(study: Study, sweep: Sequence[Mapping[str, Json]] = (), mapped: Sequence[Record] = ()) -> str:
    """Return all of a study as JSON; times in seconds, sizes in bytes or elements."""
    model, parameters, device = study.model, study.parameters, study.device
    record: Record = {
        "format": FORMAT,
        "model": {
            "name": model.name,
            "model_type": model.model_type,
            "layers": [{"kind": kind.name, "count": kind.count} for kind in model.kinds],
            "parameters": parameters.total,
            "active_parameters": parameters.active,
            "active_parameters_without_input_embedding": parameters.active_without_lookup,
            "weight_bytes": study.weight_bytes,
            "kv_bytes_per_token": study.kv_bytes_per_token,
            "formats": study.precision.summary,
        },
        "system": {
            "name": device.name,
            "macs_per_s": {form: rounded(rate) for form, rate in device.macs_per_s.items()},
            "bytes_per_s": rounded(device.bytes_per_s),
            "capacity_bytes": device.capacity_bytes or None,
        },
        "counted_by": study.request.time.value,
        "steps": [_step_record(study, step) for step in study.steps],
        "notes": list(study.notes),
        "warnings": list(study.warnings),
    }
    if sweep:
        record["sweep"] = [dict(row) for row in sweep]
    if mapped:
        record["mapped"] = list(mapped)
    return json_text(record, indent=2) + "\n"


def _step_record(study: Study, step: StepStudy) -> Record:
    """Return the figures of a step, its layers and its kernels."""
    one, device = step.deployment, study.device
    peak = device.rate(study.precision.activations.name)
    chips = one.degrees.chips
    record: Record = {
        "step": step.batch.name,
        "tokens": step.batch.tokens,
        "sequences": step.batch.sequences,
        "chips": chips,
        "degrees": one.degrees.name,
        "degrees_tried": step.tried,
        "degrees_infeasible": step.infeasible,
        "macs": step.macs,
        "weight_read_bytes": step.weight_bytes,
        "time_s": rounded(step.exec_s),
        "assumptions": list(step.assumptions),
        **{f"{way.value}_s": rounded(seconds) for way, seconds in step.times.items()},
        "full_overlap_s": rounded(one.kernels.overlap_s) if chips == 1 else None,
        "exchange_s": rounded(one.exchange_s),
        "stage_layers": list(one.stage_layers),
        "tokens_per_s": rounded(step.tokens_per_s),
        "tokens_per_s_per_sequence": rounded(step.tokens_per_s_per_sequence),
        "mac_utilisation": rounded(step.macs / (chips * peak * step.exec_s)),
        "memory_utilisation": rounded(one.degrees.micro_batches * one.kernels.memory_s / step.exec_s),
        "chip_weight_bytes": one.weight_bytes,
        "chip_kv_bytes": one.kv_bytes,
        "offload_share": rounded(float(one.offload)),
        "chip_offload_bytes": one.offload_bytes,
        "activity": _busy(
            replace(
                step_activity(one.kernels, device, step.exec_s, one.degrees.micro_batches),
                links=link_activity(one.link_bytes, one.link_bytes_per_s, step.exec_s),
            )
        ),
    }
    if step.usd_per_million_tokens:
        record["usd_per_million_tokens"] = rounded(step.usd_per_million_tokens)
    if step.energy is not None:
        record["energy_j"] = rounded(step.energy.total_j)
        record["energy_j_per_token"] = rounded(step.energy.total_j / step.batch.tokens)
        record["chip_power_w"] = rounded(step.energy.power_w)
        record["is_throttled"] = step.energy.is_throttled
    if step.chunk_s:
        record["chunks"] = [
            {"past": chunk.groups[0].past, "new": chunk.groups[0].new, "time_s": rounded(seconds)}
            for chunk, seconds in zip(step.batch.chunks, step.chunk_s, strict=True)
        ]
    record["parts"] = [
        {
            "part": part.part,
            "count": part.count,
            "time_s": rounded(part.exec_s),
            "memory_s": rounded(part.memory_s),
            "transfers_hidden_s": rounded(part.hidden_s),
            "transfers_exposed_s": rounded(part.exposed_s),
        }
        for part in one.kernels.parts
    ]
    record["kernels"] = [_kernel_record(study, kernel) for kernel in one.kernels.kernels]
    return record


def _kernel_record(study: Study, one: TimedKernel) -> Record:
    """Return a kernel of a chip with its bytes, times and how busy it keeps the chip."""
    kernel, time, frequency = one.kernel, one.time, study.device.frequency_hz
    busy = activity(kernel, time, study.device)
    return {
        "kind": kernel.kind.value,
        **{name: getattr(kernel, name) for name in _OF_KERNEL},
        "tile": time.tile or None,
        "compute_s": rounded(time.compute_s),
        "memory_s": rounded(time.memory_s),
        "time_s": rounded(time.exec_s),
        "time_cycles": rounded(time.exec_s * frequency) if frequency else None,
        "bound": time.bound,
        **{f"{name}_activity": share for name, share in _busy(busy).items() if name != "link"},
    }


def _busy(found: Activity) -> Record:
    """Return activities by name: of one kernel none of links, which exchanges keep busy."""
    named = {"mac": found.macs, "memory": found.memory, **found.levels, "vector": found.vector,
             "offload": found.offload, "link": found.links}  # fmt: skip
    return {name: None if share is None else rounded(share) for name, share in named.items()}


def study_csv(study: Study) -> str:
    """Return the kernels of all steps as CSV."""
    rows = [
        {"system": study.device.name, "step": step.batch.name, **_kernel_record(study, one)}
        for step in study.steps
        for one in step.deployment.kernels.kernels
    ]
    return rows_csv(rows)


def rows_csv(rows: Sequence[Mapping[str, Json]]) -> str:
    """Return rows as CSV, headings being the names of the first one; what is none is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if value is None else value for key, value in row.items()} for row in rows)
    return text.getvalue()
