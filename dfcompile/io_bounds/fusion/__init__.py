"""Chains and graphs of operators: what stays on the chip between them."""
