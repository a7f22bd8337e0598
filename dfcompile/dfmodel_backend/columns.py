"""Columns of numbers: the same figure of many sets of kernels."""

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]  # one figure per set, or per configuration
Numbers = npt.NDArray[np.int64]
Members = npt.NDArray[np.bool_]  # [set, kernel]: whether the kernel at that position is in the set
