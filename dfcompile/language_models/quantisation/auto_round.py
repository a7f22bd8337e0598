"""Settings that AutoRound leaves in files of other methods, which it exports [hf]."""

from msgspec import Struct

from dfcompile.language_models.quantisation.place import Place


class AutoRoundSettings(Struct, frozen=True, kw_only=True):
    """How weights were found.

    Attributes:
        data_type: of weights; others than ``int`` are no format of the method that the file names.
    """

    data_type: str | None = None
    amp: object = None
    autoround_version: object = None
    batch_size: object = None
    dataset: object = None
    enable_minmax_tuning: object = None
    enable_norm_bias_tuning: object = None
    enable_quanted_input: object = None
    gradient_accumulate_steps: object = None
    iters: object = None
    low_cpu_mem_usage: object = None
    low_gpu_mem_usage: object = None
    lr: object = None
    minmax_lr: object = None
    not_use_best_mse: object = None
    nsamples: object = None
    quant_block_list: object = None
    sampler: object = None
    scale_dtype: object = None  # of the tuning: files have scales of 16 bits
    seqlen: object = None
    to_quant_block_names: object = None
    train_bs: object = None


def check_data_type(settings: AutoRoundSettings, place: Place) -> None:
    """Check that weights are integers.

    Raises:
        UserError: they are not.
    """
    if settings.data_type not in (None, "int"):
        raise place.inside("data_type").wrong(settings.data_type, "int")
