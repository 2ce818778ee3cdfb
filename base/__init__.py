"""Basics for all other packages: errors, events, settings, redaction, keys of the store. This
package imports no other package of longtable.
"""
