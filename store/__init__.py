"""Keep threads: checkpoint savers, locks, damaged data, encryption, and records beside the
checkpoints.
"""
