"""The web chat: pages, their routes and their templates."""
