"""Settings from the command line, the environment and the settings file."""
