"""The ladders: the engine and its rivals on the same work. Import what you need from the modules."""
