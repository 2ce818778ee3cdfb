"""Basics for all other packages: errors, events, settings, redaction, keys of the store. It imports
no other package of longtable.
"""
