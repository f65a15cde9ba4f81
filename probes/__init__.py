"""What this host is and whether it may be believed. May import neither engine nor ladders nor results."""
