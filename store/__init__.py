"""Where threads live: savers, locks, damage, encryption, and records beside the threads."""
