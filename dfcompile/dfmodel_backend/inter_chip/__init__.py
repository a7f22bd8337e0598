"""Several chips: degrees of parallelism, shares, layouts, and the time that they spend exchanging."""
