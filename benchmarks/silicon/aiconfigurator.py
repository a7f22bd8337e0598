"""AIConfigurator's estimates of every sixth served row beside ours: ``python -m benchmarks.silicon.aiconfigurator``.

The wheel `aiconfigurator-core` 0.12.0 and what it needs (pandas, pyarrow, pyyaml) have to be installed. It is asked
with the newest tables of a framework, steps of 8,192 tokens, and the formats that a row has with us.
"""

import sys
from collections import defaultdict

from benchmarks.silicon.operators import VERSIONS
from benchmarks.silicon.serving import FEW_USERS, Row, compared, mean, rows

EVERY, CHUNK = 6, 8192
_CHECKPOINTS = {
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/Meta-Llama-3.1-8B",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "meta-llama/Meta-Llama-3.1-8B",
}
_WIDE = "bfloat16"
_FORMS = {"bf16": _WIDE, "mxfp4": "w4a16_mxfp4", "int4": "int4_wo"}


def estimated(row: Row) -> tuple[float, float] | None:
    """Return milliseconds per output token and to the first token; none: it has no table of an operator."""
    from aiconfigurator_core.sdk import common, config  # type: ignore[import-not-found, unused-ignore]
    from aiconfigurator_core.sdk.backends.factory import get_backend  # type: ignore[import-not-found, unused-ignore]
    from aiconfigurator_core.sdk.errors import PerfDataNotAvailableError  # type: ignore[import-not-found, unused-ignore]
    from aiconfigurator_core.sdk.models import get_model  # type: ignore[import-not-found, unused-ignore]
    from aiconfigurator_core.sdk.perf_database import get_database  # type: ignore[import-not-found, unused-ignore]

    precision, framework = row.precision, row.framework
    weights, experts = (form.stored_name for form in (precision.attention, precision.experts))
    is_static = weights == "fp8" and not row.is_narrowed
    split = config.ModelConfig(
        tp_size=row.tensor,
        gemm_quant_mode=common.GEMMQuantMode["fp8_static" if is_static else _FORMS.get(weights, weights)],
        moe_quant_mode=common.MoEQuantMode[_FORMS.get(experts, experts)],
        kvcache_quant_mode=common.KVCacheQuantMode[_FORMS.get(precision.kv.name, precision.kv.name)],
        fmha_quant_mode=common.FMHAQuantMode[_WIDE],
        moe_tp_size=row.tensor // row.expert,
        moe_ep_size=row.expert,
    )
    asked = config.RuntimeConfig(batch_size=row.users, isl=row.prompt, osl=row.answer)
    tables = get_database(row.system.replace("-", "_"), framework, VERSIONS[row.system][framework])
    try:
        model = get_model(_CHECKPOINTS.get(row.checkpoint, row.checkpoint), split, framework)
        found = get_backend(framework).run_agg(model, tables, asked, ctx_tokens=CHUNK).get_result_dict()
    except PerfDataNotAvailableError:
        return None
    return float(found["tpot"]), float(found["ttft"])


def main() -> int:
    """Print errors of both, of all rows and by kind and framework."""
    errors: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows()[::EVERY]:
        theirs = None if row.is_capped else estimated(row)
        if theirs is None:
            continue
        ours = compared(row)
        for name in ("all", row.kind, row.framework):
            errors[name].append((theirs[0] / row.tpot_ms - 1, ours.error))
        if row.users <= FEW_USERS:
            errors[f"first token, at most {FEW_USERS} users"].append((theirs[1] / row.ttft_ms - 1, ours.first_error))
    print("| rows | count | AIConfigurator, % | ours, % |\n|---|---:|---:|---:|")
    for name, both in errors.items():
        print(f"| {name} | {len(both)} | {mean([one[0] for one in both]):.1f} | {mean([one[1] for one in both]):.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
