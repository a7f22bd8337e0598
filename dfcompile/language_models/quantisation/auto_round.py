"""Settings that other tools leave in files of several methods: AutoRound, which exports them, and ExLlama [hf]."""

from dfcompile.language_models.quantisation.keys import Keys


class ExllamaSettings(Keys, frozen=True):
    """Of kernels."""

    harmless = "version max_input_len max_batch_size"


class AutoRoundSettings(Keys, frozen=True, kw_only=True):
    """How weights were found; ``scale_dtype`` is of the tuning: files have scales of 16 bits.

    Attributes:
        data_type: of weights; others than ``int`` are no format of the method that the file names.
    """

    harmless = (
        "amp autoround_version batch_size dataset enable_minmax_tuning enable_norm_bias_tuning enable_quanted_input "
        "gradient_accumulate_steps iters low_cpu_mem_usage low_gpu_mem_usage lr minmax_lr not_use_best_mse nsamples "
        "quant_block_list sampler scale_dtype seqlen to_quant_block_names train_bs"
    )
    data_type: str | None = None

    def check_data_type(self) -> None:
        """Check that weights are integers.

        Raises:
            UserError: they are not.
        """
        if self.data_type is not None:
            self.require("data_type", ("int",))
