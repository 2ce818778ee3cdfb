"""The model's call: its plan, its settings, its errors."""
