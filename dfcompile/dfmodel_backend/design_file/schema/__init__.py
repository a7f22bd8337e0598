"""The message format of DFModel design files [ko24]."""
