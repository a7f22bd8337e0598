"""A study of a language model as plain values: JSON, and the rows of CSV; integers stay exact."""

from collections.abc import Mapping, Sequence
from typing import Final

from dfcompile.host.printable import json_text
from dfcompile.language_models.study import Study
from dfcompile.report.language_models.figures import figures_of
from dfcompile.report.plain_values import Json, rounded, to_record

Record = dict[str, Json]

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
        "steps": [to_record(step) for step in figures_of(study)],
        "notes": list(study.notes),
        "warnings": list(study.warnings),
    }
    if sweep:
        record["sweep"] = [dict(row) for row in sweep]
    if mapped:
        record["mapped"] = list(mapped)
    return json_text(record, indent=2) + "\n"


def study_rows(study: Study) -> list[dict[str, Json]]:
    """Return a row per kernel of all steps."""
    return [
        {"system": study.device.name, "step": step.step, **to_record(kernel)}
        for step in figures_of(study)
        for kernel in step.kernels
    ]
