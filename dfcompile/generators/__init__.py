"""Generators: the graphs that ``dfcompile generate`` makes."""
