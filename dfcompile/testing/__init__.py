"""What tests of plug-ins need: a checker for each kind, the same for ours and for those of other packages."""

from dfcompile.testing.canonical_dags import canonical_dags
from dfcompile.testing.expansions import canonical_program, check_expansion, check_onnx_expansion
from dfcompile.testing.models import model_of_text
from dfcompile.testing.partitioners import check_partitioner
from dfcompile.testing.passes import check_pass

__all__ = [
    "canonical_dags",
    "canonical_program",
    "check_expansion",
    "check_onnx_expansion",
    "check_partitioner",
    "check_pass",
    "model_of_text",
]
