"""How good could it be: the least traffic for every buffer size, of operators, chains and whole models."""
