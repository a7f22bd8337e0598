"""Methods by what their formats have in common: the keys of each, and what they say. No other file lists them."""
