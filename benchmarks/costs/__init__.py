"""What providers with a prompt cache bill for a conversation."""
