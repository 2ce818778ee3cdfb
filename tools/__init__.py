"""The tools that the model may call, and the walls around the database."""
