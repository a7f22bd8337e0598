"""Plug-ins: kinds of parts, the values that are found of each, and whose fault it is when one fails."""

from dfcompile.plugins.kind import Collected as Collected
from dfcompile.plugins.kind import ImportFault as ImportFault
from dfcompile.plugins.kind import KindListing as KindListing
from dfcompile.plugins.kind import Plugin as Plugin
from dfcompile.plugins.kind import PluginKind as PluginKind
from dfcompile.plugins.kind import faults_of as faults_of
from dfcompile.plugins.kind import faults_of_pass as faults_of_pass
from dfcompile.plugins.kind import is_own as is_own
from dfcompile.plugins.kind import missing as missing
from dfcompile.plugins.kind import name_of as name_of
