"""The commands of the command line and of the chat."""
