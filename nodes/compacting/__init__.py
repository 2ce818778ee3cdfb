"""What the step `compact` needs besides the summariser."""
