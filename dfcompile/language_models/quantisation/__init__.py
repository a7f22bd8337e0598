"""Number formats that a configuration states in ``quantization_config``; one file per method."""

from dfcompile.language_models.quantisation.precision import precision_of

__all__ = ["precision_of"]
