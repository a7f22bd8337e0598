"""What a lowering takes on a machine: its own tasks, scheduled configuration by configuration, replayed."""
