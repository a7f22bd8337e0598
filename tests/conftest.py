"""Settings of all tests."""

import functools
import gc
import os
import sys

from hypothesis import settings

from dfcompile.cli.main import COLLECTED_AFTER, THREADS_OF_PRODUCTS
from tests.examples import DEFAULT, examples

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # onnxruntime reads it when it is imported
os.environ["DFCOMPILE_PROGRESS"] = "none"  # pytest has tests write to a file, which would get a line per stage
# As the command line does: nearly all that is made stays, and products are small (workers take this over).
gc.set_threshold(*COLLECTED_AFTER)
os.environ.setdefault(*THREADS_OF_PRODUCTS)

# Also where a test says nothing: a busy machine makes no property false.
settings.register_profile("tests", examples(DEFAULT))
settings.load_profile("tests")


def pytest_runtest_setup() -> None:
    """Let PyTorch have one thread, and make its table of operators to export once: that is half of a small export."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)
    registration = sys.modules.get("torch.onnx._internal.exporter._registration")
    if registration is not None:
        made = registration.ONNXRegistry.from_torchlib
        if not hasattr(made, "cache_info"):
            registration.ONNXRegistry.from_torchlib = staticmethod(functools.cache(made))
