"""Build the graph: its nodes and edges, the call config, who answers."""
