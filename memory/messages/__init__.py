"""Messages: their rounds, marks and metadata, the reasoning and the markers in them."""
