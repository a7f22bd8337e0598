"""Several chips: degrees of parallelism, shares, collectives and what a step takes under them."""
