"""Topologies of [ko24]; any other product of dimensions of known kinds is a topology as well."""

NAMED = {
    "r": "ring",
    "sw": "one switch",
    "fc": "fully connected",
    "r_r": "two-dimensional torus",
    "r_fc": "rings, fully connected (ZionEX)",
    "r_sw": "rings behind a switch (DGX-1)",
    "sw_sw": "switches behind a switch (DGX-2)",
    "fc_fc": "dragonfly",
    "r_r_r": "three-dimensional torus",
    "r_sw_sw": "DGX-1 behind one more level of switches",
    "sw_sw_sw": "three levels of switches, a fat tree",
    "r_r_r_r": "four-dimensional torus",
}
