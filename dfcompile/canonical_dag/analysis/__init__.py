"""What is known of a canonical DAG before it is scheduled: order, work, depths."""
