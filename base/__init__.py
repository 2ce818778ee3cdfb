"""What every room speaks: errors, events, settings, redaction, keys of the store. It imports
nothing of ours.
"""
