"""The data sets of the ladders: where they come from, how they are cached."""
