"""Keys of ``quantization_config`` by method: those that are read, and those that change no byte [hf]."""

from collections.abc import Mapping

# What keys are there beside those that are read: how a checkpoint was made and is loaded, which changes no byte here.
ABOUT_MAKING: Mapping[str, str] = {
    "awq": "backend do_fuse exllama_config fuse_max_seq_len modules_to_fuse version w_bit q_group_size",
    "bitsandbytes": "_load_in_4bit _load_in_8bit bnb_4bit_compute_dtype bnb_4bit_quant_storage bnb_4bit_quant_type "
    "llm_int8_enable_fp32_cpu_offload llm_int8_has_fp16_weight llm_int8_threshold",
    "compressed-tensors": "format global_compression_ratio quantization_status run_compressed sparsity_config "
    "transform_config version",
    "fbgemm_fp8": "activation_scale_ub",
    "fp8": "dequantize fmt scale_fmt",
    "gptq": "backend batch_size block_name_to_quantize cache_block_outputs checkpoint_format damp_percent dataset "
    "desc_act disable_exllama exllama_config format is_marlin_format max_input_length meta model_file_base_name "
    "model_name_or_path model_seqlen module_name_preceding_first_block modules_in_block_to_quantize pack_dtype "
    "pad_token_id static_groups tokenizer true_sequential use_cuda_fp16 use_exllama",
    "hqq": "",
    "modelopt": "producer",
    "mxfp4": "dequantize",
    "quark": "algo_config export pack_method producer quant_mode softmax_quant_spec version",
    "torchao": "modules_to_not_convert_regex untie_embedding_weights",
}
READ: Mapping[str, str] = {
    "awq": "bits group_size zero_point",
    "bitsandbytes": "bnb_4bit_use_double_quant llm_int8_skip_modules load_in_4bit load_in_8bit",
    "compressed-tensors": "config_groups ignore kv_cache_scheme",
    "fbgemm_fp8": "",
    "fp8": "activation_scheme ignored_layers kv_cache_scheme weight_block_size",
    "gptq": "bits dynamic group_size lm_head sym",
    "hqq": "quant_config skip_modules",
    "modelopt": "config_groups exclude_modules group_size ignore kv_cache_quant_algo kv_cache_scheme quant_algo",
    "mxfp4": "",
    "quark": "exclude global_quant_config kv_cache_quant_config layer_quant_config layer_type_quant_config",
    "torchao": "include_input_output_embeddings quant_type quant_type_kwargs",
}
LISTS = ("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "exclude", "skip_modules",
          "llm_int8_skip_modules")  # fmt: skip
