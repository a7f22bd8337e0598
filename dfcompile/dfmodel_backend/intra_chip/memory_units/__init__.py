"""Chips whose SRAM is memory units (PMUs): how many a set of kernels takes, and what it costs in time."""
