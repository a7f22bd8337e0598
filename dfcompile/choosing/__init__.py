"""The automatic choice of expansions and granularities for a whole model."""

from dfcompile.choosing.automatic import AutomaticChoice as AutomaticChoice
from dfcompile.choosing.candidate import Candidate as Candidate
from dfcompile.choosing.estimate import Estimate as Estimate
from dfcompile.choosing.estimate import Memory as Memory
from dfcompile.choosing.operator_options import OperatorOption as OperatorOption
from dfcompile.choosing.operator_options import OperatorOptions as OperatorOptions
from dfcompile.choosing.scoring import QUICK as QUICK
from dfcompile.choosing.scoring import SLOWLY_SCHEDULED as SLOWLY_SCHEDULED
from dfcompile.choosing.scoring import THOROUGH as THOROUGH
from dfcompile.choosing.scoring import UNBOUNDED as UNBOUNDED
from dfcompile.choosing.scoring import Limits as Limits
from dfcompile.choosing.scoring import Machine as Machine
from dfcompile.choosing.scoring import MadeSchedule as MadeSchedule
from dfcompile.choosing.scoring import OnMachine as OnMachine
from dfcompile.choosing.scoring import Score as Score
from dfcompile.choosing.scoring import Scores as Scores
from dfcompile.choosing.scoring import Traffic as Traffic
from dfcompile.choosing.search import Selection as Selection
from dfcompile.choosing.sketches import Sketch as Sketch
