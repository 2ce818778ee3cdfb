"""Call a model: its settings, its errors, and the material that is sent with a call."""
