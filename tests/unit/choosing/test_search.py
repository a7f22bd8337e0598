"""Which uniform choices of a model are looked at first."""

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.choosing.candidate import Candidate
from dfcompile.choosing.estimate import Estimate
from dfcompile.choosing.operator_options import OperatorOption, OperatorOptions
from dfcompile.choosing.search import _alone
from dfcompile.options import Choice


def test_combinations_that_are_not_known_come_behind_what_is_faster() -> None:
    """Of the second expansion one product is known alone: the other counts as long."""
    known = ((("Conv", "direct"), ("MatMul", "ip"), 20), (("Conv", "fft"), ("MatMul", "ip"), 60))
    options = tuple(OperatorOption((*pair,), 4, Estimate(cycles, 0, 0, 1)) for *pair, cycles in known)
    takes = _alone([OperatorOptions(("conv",), options)])

    def of(conv: str, product: str, pieces: int = 4) -> int:
        return takes(Candidate((Choice("Conv", conv), Choice("MatMul", product)), Granularity(pieces=pieces)))

    assert [of("direct", "ip"), of("direct", "mv"), of("fft", "ip"), of("fft", "mv")] == [20, 20, 60, 60]
    assert of("fft", "mv", pieces=7) == 0  # of no such pieces anything is known
