"""Two instances of Aegra, an open server for LangGraph graphs, on one database."""
