"""Configurations of models that see or hear as well: which part is the text model, and what else there is [hf]."""

from collections.abc import Mapping

NESTED = ("thinker_config", "text_config", "llm_config", "language_config")  # outer ones first
QUANTISED_BY = ("quantization_config", "compression_config")  # the second one is the older name
_SETTINGS = (*QUANTISED_BY, "generation_config")  # keys of this kind that are no models
_DTYPES = ("dtype", "torch_dtype")
# The text model of a type, where its configuration leaves that out, or has the text model's fields beside the others.
TEXT_TYPES: Mapping[str, str] = {
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "gemma4_unified": "gemma4_unified_text",
    "glm46v": "glm4v_text",
    "glm4v": "glm4v_text",
    "glmga": "glm4v_text",
    "glm4v_moe": "glm4v_moe_text",
    "glm_ocr": "glm_ocr_text",
    "granite_docling": "granite_docling_text",
    "granite4_vision": "granite4_vision_text",
    "hunyuan_vl": "hunyuan_vl_text",
    "llama4": "llama4_text",
    "mllama": "mllama_text_model",
    "paddleocr_vl": "paddleocr_vl_text",
    "qwen2_5_omni": "qwen2_5_omni_text",
    "qwen2_5_omni_thinker": "qwen2_5_omni_text",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen2_vl": "qwen2_vl_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen3_omni_moe": "qwen3_omni_moe_text",
    "qwen3_omni_moe_thinker": "qwen3_omni_moe_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    **dict.fromkeys(("aya_vision", "cohere2_vision"), "cohere2"),
    **dict.fromkeys(("granite_speech", "granite_speech_plus"), "granite"),
    **dict.fromkeys(("idefics2", "mistral3"), "mistral"),
    **dict.fromkeys(
        (
            "deepseek_vl", "deepseek_vl_hybrid", "idefics3", "janus", "llava", "llava_next", "llava_next_video",
            "omniasr", "perception_lm", "smolvlm", "video_llava", "vipllava",
        ),
        "llama",
    ),
    **dict.fromkeys(("lighton_ocr", "qianfan_ocr", "qwen3_asr", "moss_transcribe_diarize"), "qwen3"),
    **dict.fromkeys(
        (
            "fast_vlm", "got_ocr2", "internvl", "llava_onevision", "ovis2", "pp_chart2table", "qwen2_audio",
            "vibevoice_asr", "video_llama_3",
        ),
        "qwen2",
    ),
    **dict.fromkeys(("blip-2", "instructblip", "instructblipvideo"), "opt"),
    "apertus1p5": "apertus1p5_text",
    "aria": "aria_text",
    "florence2": "bart",
    "fuyu": "persimmon",
    "hyperclovax_vision_v2": "hyperclovax",
    "kimi_k25": "deepseek_v3",
    "paligemma": "gemma",
    "phi4_multimodal": "phi4_multimodal",
    "shieldgemma2": "gemma3_text",
}  # fmt: skip


def text_part(document: Mapping[str, object]) -> tuple[Mapping[str, object], tuple[str, ...]]:
    """Return the fields of the text model, and the keys of models beside it.

    What only an outer configuration says holds for the text model as well: whether the head is the embedding, how
    weights are quantised, and the number format.
    """
    fields, beside = document, list[str]()
    is_nested = document.get("model_type") in TEXT_TYPES
    if document.get("model_type") == "vision-encoder-decoder" and isinstance(decoder := document.get("decoder"), dict):
        return {**decoder, "encoder": document.get("encoder")}, ("encoder",)
    while True:
        name = next((key for key in NESTED if isinstance(fields.get(key), dict)), None)
        is_nested = is_nested or name is not None
        beside += (key for key in fields if key.endswith("_config") and key not in (name, *_SETTINGS))
        inner = fields.get(name) if name is not None else None
        if not isinstance(inner, dict):
            return fields, tuple(beside) if is_nested else ()
        shared = ("tie_word_embeddings", *QUANTISED_BY, *(() if any(key in inner for key in _DTYPES) else _DTYPES))
        outer = {key: fields[key] for key in shared if key in fields}
        fields = {**outer, **inner, "model_type": inner.get("model_type", fields.get("model_type"))}
