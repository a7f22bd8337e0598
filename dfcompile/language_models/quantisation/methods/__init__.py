"""One file per ``quant_method``: the keys of the format, and what they say. No other file lists them."""
