"""Knowledge in the formats of other programs."""
