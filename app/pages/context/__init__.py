"""The right side of the web page: what the model sees.

`panel_data` makes a small tree of a thread's record, `panel_html` writes it as HTML, and
`panel_routes` serves it.
"""
