"""What draws a node of each operator, by the kind of the operator."""
