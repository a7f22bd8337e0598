"""A solver of fusion: each kernel joins the configuration before it as long as that is faster."""

from dfcompile.dfmodel_backend.fusion.fusion_problem import FusionProblem
from dfcompile.dfmodel_backend.fusion.fusion_solver import fusion_solver
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain


@fusion_solver("greedy", is_exact=False, source="mylab24")
def greedy(problem: FusionProblem) -> Chain | None:
    """Take kernels in topological order; each joins the last configuration where that is faster than one of its own."""
    shape = problem.shape
    chain: list[int] = []
    for kernel in _in_order(shape.predecessors):
        alone = 1 << kernel
        joined = chain[-1] | alone if chain else 0
        if joined and joined.bit_count() <= shape.most_kernels:
            apart_ns, together_ns = problem.chain_times((*chain, alone)), problem.chain_times((*chain[:-1], joined))
            is_full = len(chain) == len(shape.allowed)
            if is_full or together_ns.sum() < apart_ns.sum():
                chain[-1] = joined
                continue
        chain.append(alone)
    fits = len(chain) <= len(shape.allowed) and problem.chain_times(tuple(chain)).sum() < float("inf")
    return tuple(chain) if fits and _may_be_there(chain, shape.allowed) else None


def _in_order(predecessors: tuple[int, ...]) -> list[int]:
    """Return the kernels so that each comes behind those that it waits for; smaller numbers first."""
    order: list[int] = []
    done = 0
    while len(order) < len(predecessors):
        kernel = next(k for k, needed in enumerate(predecessors) if not done >> k & 1 and not needed & ~done)
        order.append(kernel)
        done |= 1 << kernel
    return order


def _may_be_there(chain: list[int], allowed: tuple[int, ...]) -> bool:
    return all(not kernels & ~mask for kernels, mask in zip(chain, allowed, strict=False))
