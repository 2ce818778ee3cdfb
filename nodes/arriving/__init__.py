"""What arrives: messages of a caller, the inbox, and the limits on both."""
