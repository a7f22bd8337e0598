"""Systems of this package: a YAML file each."""
