"""What came of a case."""

from dataclasses import dataclass
from enum import Enum, unique


@unique
class Verdict(Enum):
    """What came of a case; the value is how it is printed."""

    SAME = "same value"
    BOTH_REFUSE = "refused by both"
    REFUSED_ALONE = "refused, though onnxruntime runs it"
    ACCEPTED_ALONE = "accepted, though onnxruntime refuses it"
    NOT_COMPARED = "accepted, nothing to compare with"
    KNOWN_DIFFERENCE = "another value than onnxruntime's, for a listed reason"
    ACCEPTED = "accepted"
    REFUSED = "refused in one line"
    DIFFERENT = "ANOTHER VALUE THAN ONNXRUNTIME'S"
    MISCOUNTED = "ANOTHER FIGURE THAN COUNTED BY HAND"
    SLOWER = "SLOWER THAN WHAT MAY BE ASKED FOR INSTEAD"
    SILENT = "ACCEPTED, THOUGH IT IS TO BE REFUSED"
    WRONGLY_REFUSED = "REFUSED, THOUGH NOTHING OR SOMETHING ELSE IS WRONG"
    BUG = "EXIT STATUS 2"
    UNCLEAN = "MESSAGE OF SEVERAL LINES, OR WITH CONTROL CHARACTERS"
    TOO_SLOW = "TOO SLOW"
    TOO_LARGE = "TOO MUCH MEMORY"
    DIED = "PROCESS DIED"

    @property
    def is_finding(self) -> bool:
        """Whether something must be mended."""
        return self.value.isupper()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case.

    Attributes:
        verdict: in a word.
        cause: the same for cases that are probably alike.
        detail: of this case.
    """

    verdict: Verdict
    cause: str = ""
    detail: str = ""
