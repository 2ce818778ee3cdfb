"""Build the graph: its nodes and edges, the settings of each call, and the models that answer."""
