"""Build the graph: its nodes and edges, the call config, and the models that answer."""
