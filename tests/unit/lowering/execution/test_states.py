"""Cutting the state of a lowered program: what it has afterwards, in which order."""

from collections import Counter

import dace
import numpy as np
import pytest
from dace.sdfg.nodes import MapEntry

from dfcompile.lowering.execution.states import cut_state
from tests.onnx_nodes import lowered
from tests.written_models import Written, branches


def scopes(sdfg: dace.SDFG) -> list[list[str]]:
    return [[node.map.label for node in state.nodes() if isinstance(node, MapEntry)] for state in sdfg.nodes()]
