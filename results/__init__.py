"""What was measured and where it stands. May import neither engine nor ladders."""
