"""Configurations of published models, by name; facts, without quantisation."""
