"""DAG passes: rewrites of a canonical DAG after its extraction."""

from collections.abc import Callable, Iterable
from typing import Final

from dfcompile.canonical_dag.dag import CanonicalDag
from dfcompile.canonical_dag.verifier import verify
from dfcompile.errors import VerificationError
from dfcompile.plugins import Collected, PluginKind, faults_of_pass
from dfcompile.plugins.settings import Pass, Rewrite, call_with, settings_of


class DagPass(Pass, frozen=True):
    """A named rewrite of a canonical DAG."""

    def apply(self, dag: CanonicalDag) -> CanonicalDag:
        """Return the rewritten DAG, verified; the same object if the pass changes nothing.

        Raises:
            UserError: the pass refuses the DAG; the message begins with ``in pass 'name'``.
            PluginError: a third-party pass raised another error, or returned something that is no canonical DAG.
            VerificationError: a built-in pass returned something that is no canonical DAG.
        """
        with faults_of_pass(self.name, self.origin):
            changed = call_with(self.rewrite, dag, self.values)
            if not isinstance(changed, CanonicalDag):
                raise VerificationError(f"returned {type(changed).__name__} against a CanonicalDag")
            if changed is not dag:
                verify(changed)
            return changed


def dag_pass(name: str, *, source: str) -> Callable[[Rewrite], DagPass]:
    """Make a `DagPass` from what it decorates; `registered_dag_passes` finds it, so nothing is registered on import.

    Decorates a function of a canonical DAG, whose keyword-only parameters are options, or a frozen dataclass with a
    method ``__call__`` of a canonical DAG, whose fields are options. Options are ``int``, ``bool``, ``str`` or
    ``float``.

    Args:
        name: that the user writes in ``--passes``, with options as in ``through-memory{above=64}``.
        source: citation key.

    Raises:
        RegistrationError: an option is of another type.
    """

    def decorate(rewrite: Rewrite) -> DagPass:
        return DagPass(name, rewrite, source, rewrite.__module__, settings_of(rewrite, f"pass {name!r}"))

    return decorate


DAG_PASSES: Final = PluginKind(
    "DAG pass", DagPass, "dfcompile.canonical_dag.passes", "dfcompile.dag_passes", plural="DAG passes"
)


def registered_dag_passes() -> Collected[DagPass]:
    """Return every DAG pass of this package and of the entry points of ``dfcompile.dag_passes``.

    Raises:
        RegistrationError: two modules claim one name.
    """
    return DAG_PASSES.collect()


def apply_dag_passes(dag: CanonicalDag, passes: Iterable[DagPass]) -> CanonicalDag:
    """Apply passes in order; each must return a canonical DAG.

    Raises:
        UserError: a pass refuses the DAG; the message begins with ``in pass 'name'``.
        PluginError, VerificationError: as `DagPass.apply`; the message names the pass.
    """
    for next_pass in passes:
        dag = next_pass.apply(dag)
    return dag
