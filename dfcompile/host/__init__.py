"""The computer that dfcompile runs on: files, folders, child processes, and texts that are safe to show."""
