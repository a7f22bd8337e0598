"""How many cases of which kind a campaign has, and their seeds."""

from collections.abc import Mapping

MODEL_KINDS: Mapping[str, int] = {
    "node": 30, "graph": 18, "folded": 5, "empty": 5, "fixed": 5, "function": 4, "figures": 6, "mutated": 16,
    "published": 11,
}  # per cent  # fmt: skip
FILES_PER_CACHE = 10
MODELS_PER_MEMORY = 100  # that is played
MODELS_PER_COMPARISON = 500  # of the default choice with others, which takes seconds
MODELS_PER_COMPILATION = 500  # a compilation takes as long as two hundred interpreted models


def planned(
    seed: int, models: int, dags: int, files: int, configurations: int, *, published: bool = True
) -> list[tuple[str, str]]:
    """Return kind and seed of every case, kinds in turn, so that a campaign that is cut short had all of them.

    Args:
        seed: of the campaign.
        models: .onnx files; one in so many whose memory is played, or whose choices are compared, come on top.
        dags: canonical DAG files.
        files: set-up and system files, one half each; a tenth as many damaged caches, and outputs that are inputs, come
            on top.
        configurations: of language models, quantised.
        published: whether models that ONNX publishes are mutated as well; collecting them takes seconds.
    """
    shares = {kind: part for kind, part in MODEL_KINDS.items() if published or kind != "published"}
    whole = sum(shares.values())
    counts = {kind: models * part // whole for kind, part in shares.items()}
    counts["node"] += models - sum(counts.values())
    counts["compiled"] = models // MODELS_PER_COMPILATION
    counts["memory"] = models // MODELS_PER_MEMORY
    counts["slower"] = counts["brute"] = counts["orders"] = models // MODELS_PER_COMPARISON
    counts |= {"dag": dags, "setup": files // 2, "system": files - files // 2, "quantised": configurations}
    counts["caches"] = counts["overwrites"] = files // FILES_PER_CACHE
    cases = [
        ((number + 0.5) / count, kind, f"{seed}:{kind}:{number}")
        for kind, count in counts.items()
        for number in range(count)
    ]
    return [(kind, case) for _, kind, case in sorted(cases)]
