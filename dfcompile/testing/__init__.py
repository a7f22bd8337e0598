"""What tests of plug-ins need: a checker for each kind, the same for ours and for those of other packages."""

from dfcompile.testing.canonical_dags import canonical_dags
from dfcompile.testing.expansions import canonical_program, check_expansion, check_onnx_expansion
from dfcompile.testing.front_ends import check_front_end
from dfcompile.testing.models import model_of_text
from dfcompile.testing.partitioners import check_partitioner
from dfcompile.testing.passes import check_pass
from dfcompile.testing.report_formats import check_report_format, sample_reports
from dfcompile.testing.solvers import check_solver
from dfcompile.testing.systems import check_system
from dfcompile.testing.topologies import check_topology

__all__ = [
    "canonical_dags",
    "canonical_program",
    "check_expansion",
    "check_front_end",
    "check_onnx_expansion",
    "check_partitioner",
    "check_pass",
    "check_report_format",
    "check_solver",
    "check_system",
    "check_topology",
    "model_of_text",
    "sample_reports",
]
