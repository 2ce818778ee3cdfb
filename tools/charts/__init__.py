"""Charts of results: check a Vega-Lite spec, choose a spec from a wish in words, draw it."""
