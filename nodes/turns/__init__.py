"""What the steps of a turn share."""
