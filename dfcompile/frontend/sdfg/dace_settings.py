"""DaCe's settings: no source lines, no transformation history, no files in the current folder."""

from dace.config import Config

from dfcompile.host.dace_guard import NOWHERE


def apply_dace_settings() -> None:
    """Set DaCe's process-wide configuration; doing it again changes nothing.

    Source lines of nodes cost a walk over the call stack for each node, the history a copy of the SDFG for each
    transformation, and DaCe's own build folder is in the current one, where anybody may have put something (it is
    set here once more for those who had imported DaCe before).
    """
    Config.set("compiler", "lineinfo", value="none")
    Config.set("store_history", value=False)
    Config.set("default_build_folder", value=NOWHERE)
