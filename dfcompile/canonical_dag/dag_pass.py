"""DAG passes: rewrites of a canonical DAG after its extraction."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec import Struct, field

from dfcompile.canonical_dag.dag import CanonicalDag
from dfcompile.canonical_dag.verifier import verify
from dfcompile.errors import VerificationError
from dfcompile.plugins import Collected, PluginKind, faults_of_pass, name_of
from dfcompile.plugins.settings import Call, Setting, SettingValue, call_with, settings_of, values_of
from dfcompile.records import replace

Rewrite: TypeAlias = Callable[..., object]


class DagPass(Struct, frozen=True):
    """A named rewrite of a canonical DAG; a value, found by the collector.

    Attributes:
        name: as the user writes it in ``--passes``.
        rewrite: the function or frozen dataclass that was decorated; the function, or an instance of the class, takes
            a canonical DAG and returns one: its argument itself if nothing changed.
        source: citation key of where it comes from.
        module: where it is defined.
        settings: options that the user may give.
        values: of the options that are given, by the names that Python has for them.
    """

    name: str
    rewrite: Rewrite
    source: str
    module: str
    settings: tuple[Setting, ...] = ()
    values: Mapping[str, SettingValue] = field(default_factory=lambda: MappingProxyType({}))

    def __str__(self) -> str:
        return self.name

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return (self.rewrite.__doc__ or "").strip().partition("\n")[0]

    @property
    def origin(self) -> str:
        """Module and name of the function, such as ``mylab.through_memory.through_memory``."""
        return f"{self.module}.{name_of(self.rewrite)}"

    def given(self, call: Call, where: str) -> "DagPass":
        """Return the pass with the options of a call.

        Raises:
            UserError: an option does not exist, is of another type, or is missing.
        """
        return replace(self, values=MappingProxyType(values_of(call, self.settings, where)))

    def apply(self, dag: CanonicalDag) -> CanonicalDag:
        """Return the DAG rewritten, and verified.

        Raises:
            UserError: of the pass, with ``in pass 'name'`` put before it.
            PluginError: the pass of a third party raised, or what it returned is no canonical DAG.
            VerificationError: the same of a pass of ours.
        """
        with faults_of_pass(self.name, self.origin):
            changed = call_with(self.rewrite, dag, self.values)
            if not isinstance(changed, CanonicalDag):
                raise VerificationError(f"returned {type(changed).__name__} against a CanonicalDag")
            if changed is not dag:
                verify(changed)
            return changed


def dag_pass(name: str, *, source: str) -> Callable[[Rewrite], DagPass]:
    """Make a `DagPass`; importing it changes nothing anywhere.

    Decorates a function of a canonical DAG, whose keyword-only parameters are options, or a frozen dataclass with a
    method ``__call__`` of a canonical DAG, whose fields are options. Options are ``int``, ``bool``, ``str`` or
    ``float``.

    Args:
        name: as the user writes it in ``--passes``, with options as in ``through-memory{above=64}``.
        source: citation key.

    Raises:
        RegistrationError: an option is of another type.
    """

    def decorate(rewrite: Rewrite) -> DagPass:
        return DagPass(name, rewrite, source, rewrite.__module__, settings_of(rewrite, f"pass {name!r}"))

    return decorate


DAG_PASSES: Final = PluginKind(
    singular="DAG pass",
    plural="DAG passes",
    type=DagPass,
    package="dfcompile.canonical_dag.passes",
    group="dfcompile.dag_passes",
    key=str,
)


def registered_dag_passes() -> Collected[DagPass]:
    """Return every DAG pass of this package and of the entry points of ``dfcompile.dag_passes``.

    Raises:
        RegistrationError: two modules claim one name.
    """
    return DAG_PASSES.collect()


def apply_dag_passes(dag: CanonicalDag, passes: Iterable[DagPass]) -> CanonicalDag:
    """Apply passes in order; each must leave a canonical DAG.

    Raises:
        UserError: of a pass, with ``in pass 'name'`` put before it.
        VerificationError: a pass left something else; the message names the pass.
    """
    for found in passes:
        dag = found.apply(dag)
    return dag
