"""Why there is no solution, and the smallest relaxation that gives one."""
