"""Number formats that a configuration states in ``quantization_config``; methods that say the same stand together."""

from dfcompile.language_models.quantisation.precision import precision_of

__all__ = ["precision_of"]
