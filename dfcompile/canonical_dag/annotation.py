"""The annotation of a map scope: what lowering writes on its tasklet and extraction reads back."""

import json
from collections.abc import Mapping
from functools import lru_cache

import msgspec
from msgspec import Struct, to_builtins

from dfcompile.canonical_dag.kernel import Kernel
from dfcompile.errors import UserError, nearest

_INITIALISATION = "init"
_KEYS = ("calls", "kernel", "origin", "role", "scope", "spatial")


class Annotation(Struct, frozen=True):
    """What a map scope is a part of; it stands in the ``location`` of the scope's tasklet, as texts.

    Attributes:
        origin: the user's operator.
        scope: name of the scope, such as ``fc1.matmul.gather``.
        spatial: parameters of the map of which every iteration is a task of its own.
        is_initialisation: the scope sets what others accumulate to, and is no task.
        kernel: that the scope belongs to.
        calls: the library that the scope calls, which can be run, but is no canonical task.
    """

    origin: str
    scope: str
    spatial: tuple[str, ...] = ()
    is_initialisation: bool = False
    kernel: Kernel | None = None
    calls: str = ""

    def location(self) -> dict[str, str]:
        """Return the location of the tasklet; what is empty is left out."""
        optional = {
            "spatial": ",".join(self.spatial),
            "role": _INITIALISATION if self.is_initialisation else "",
            "calls": self.calls,
            "kernel": "" if self.kernel is None else _kernel_text(self.kernel),
        }
        return {"origin": self.origin, "scope": self.scope, **{key: text for key, text in optional.items() if text}}

    @staticmethod
    def of_location(location: Mapping[str, object], label: str) -> "Annotation":
        """Read what `location` has written.

        Args:
            location: of a tasklet; of a scope that lowering did not make it may be empty.
            label: of the map; name of a scope that has none.

        Raises:
            UserError: a key or a value is not one of an annotation; the message names the scope.
        """
        scope = str(location.get("scope", label))
        for key in location:
            if key not in _KEYS:
                raise UserError(f"scope {scope!r}: annotation has no {key!r}{nearest(str(key), _KEYS)}")
        role = location.get("role", _INITIALISATION)
        if role != _INITIALISATION:
            raise UserError(f"scope {scope!r}: role {role!r} against {_INITIALISATION!r} or none")
        kernel = location.get("kernel")
        return Annotation(
            origin=str(location.get("origin", scope)),
            scope=scope,
            spatial=tuple(filter(None, str(location.get("spatial", "")).split(","))),
            is_initialisation="role" in location,
            kernel=None if kernel is None else _kernel(scope, str(kernel)),
            calls=str(location.get("calls", "")),
        )


@lru_cache(maxsize=64)  # all scopes of a canonical operator have one kernel
def _kernel_text(kernel: Kernel) -> str:
    return json.dumps(to_builtins(kernel), sort_keys=True)


def _kernel(scope: str, text: str) -> Kernel:
    try:
        return msgspec.json.decode(text, type=Kernel)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UserError(f"scope {scope!r}: kernel {text!r} against the fields of a kernel: {error}") from error
