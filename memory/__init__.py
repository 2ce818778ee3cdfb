"""What the model is shown and what is kept: pure functions and small types."""
