"""Number formats that a configuration states in ``quantization_config``; methods that say the same stand together."""
