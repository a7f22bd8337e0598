"""Settings of all tests."""

import functools
import gc
import itertools
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from dfcompile.cli.main import THREADS_OF_PRODUCTS
from dfcompile.host.garbage import COLLECTED_AFTER
from dfcompile.host.private_folder import process_folder
from tests.examples import DEFAULT, examples
from tests.locations import BUILDS

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # onnxruntime reads it when it is imported
os.environ["DFCOMPILE_PROGRESS"] = "none"  # pytest has tests write to a file, which would get a line per stage
# As the command line does: nearly all that is made stays, and products are small (workers take this over).
gc.set_threshold(*COLLECTED_AFTER)
os.environ.setdefault(*THREADS_OF_PRODUCTS)

# Also where a test says nothing: a busy machine makes no property false.
settings.register_profile("tests", examples(DEFAULT))
settings.load_profile("tests")


def pytest_configure(config: pytest.Config) -> None:
    """Make a folder that workers share, and what tests start."""
    if BUILDS not in os.environ:
        os.environ[BUILDS] = tempfile.mkdtemp()
        config.add_cleanup(lambda: shutil.rmtree(os.environ[BUILDS], ignore_errors=True))


def pytest_collection_finish() -> None:
    """Keep modules and tests out of later collections: pytest makes several in the end, which took seconds."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Keep from test to test, and share among workers, what libraries make anew for each model or process.

    PyTorch makes a table of operators to export: half the time of a small model. DaCe compiles its header, for each
    level of optimisation, in a folder of the process, and for the first program without.
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)
    registration = sys.modules.get("torch.onnx._internal.exporter._registration")
    if registration is not None and not hasattr(registration.ONNXRegistry.from_torchlib, "cache_info"):
        registration.ONNXRegistry.from_torchlib = staticmethod(functools.cache(registration.ONNXRegistry.from_torchlib))
    running = sys.modules.get("dfcompile.lowering.execution.compiled_run")
    if running is not None and running.process_folder is process_folder:
        vars(running).update(process_folder=lambda: Path(os.environ[BUILDS]), _BUILDS=itertools.count(1))
