"""What the model may call, and the walls around the database."""
