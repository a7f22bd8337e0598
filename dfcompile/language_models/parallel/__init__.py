"""Several chips: degrees of parallelism, shares, collectives and the search over them."""
