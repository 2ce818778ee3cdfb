"""The web chat: `longtable web`."""
