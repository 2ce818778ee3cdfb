"""The memory of a thread: what is kept of its messages, and which messages a call shows. This
package has pure functions and small types only.
"""
