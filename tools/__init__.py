"""The parts the model may call, and the wall around the database."""
