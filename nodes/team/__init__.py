"""Teams: personas, the modes that say who answers when, and the text that each persona is told."""
