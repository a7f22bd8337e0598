"""Reports of `dfcompile llm`."""
