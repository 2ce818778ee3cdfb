"""The records that the store keeps beside a thread's checkpoints: retired messages, indexes,
archive files.
"""
