"""Plug-ins: kinds of parts, the values that are found of each, and whose fault it is when one fails."""

from dfcompile.plugins.faults import ImportFault, faults_of, faults_of_pass, is_own, name_of
from dfcompile.plugins.kind import Collected, KindListing, Plugin, PluginKind, missing

__all__ = [
    "Collected",
    "ImportFault",
    "KindListing",
    "Plugin",
    "PluginKind",
    "faults_of",
    "faults_of_pass",
    "is_own",
    "missing",
    "name_of",
]
