"""Schedules as circuits: SystemVerilog that takes the printed cycles, and its simulation."""
