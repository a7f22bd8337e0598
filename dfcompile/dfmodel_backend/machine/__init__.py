"""The machine: chips, memories, network, prices."""
