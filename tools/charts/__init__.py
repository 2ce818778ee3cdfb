"""Charts of results: check a Vega-Lite spec, choose one from words, draw it."""
