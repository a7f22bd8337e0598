"""What tests of plug-ins need: a checker for each kind, the same for ours and for those of other packages."""

from dfcompile.testing.expansions import canonical_program as canonical_program
from dfcompile.testing.expansions import check_expansion as check_expansion
from dfcompile.testing.expansions import check_onnx_expansion as check_onnx_expansion
from dfcompile.testing.expansions import check_pass as check_pass
from dfcompile.testing.mappings import check_solver as check_solver
from dfcompile.testing.mappings import check_system as check_system
from dfcompile.testing.mappings import check_topology as check_topology
from dfcompile.testing.models import canonical_dags as canonical_dags
from dfcompile.testing.models import check_front_end as check_front_end
from dfcompile.testing.models import check_partitioner as check_partitioner
from dfcompile.testing.models import model_of_text as model_of_text
