"""Settings: the command line's, the environment's and the file's."""
