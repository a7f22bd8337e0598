"""Sharding: which dimension of each kernel is split over chips, and the share of one chip."""
