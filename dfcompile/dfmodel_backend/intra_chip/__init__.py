"""One chip: what sets of kernels take as configurations, in cores, SRAM, DRAM and time."""
