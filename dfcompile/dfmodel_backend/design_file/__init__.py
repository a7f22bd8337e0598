"""DFModel's design files: what is read, checked and written back [ko24]."""
