"""Settings of all tests."""

import os

from hypothesis import settings

from tests.examples import DEFAULT, examples

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # onnxruntime reads it when it is imported

# Also where a test says nothing: a busy machine makes no property false.
settings.register_profile("tests", examples(DEFAULT))
settings.load_profile("tests")
