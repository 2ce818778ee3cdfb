"""What the store keeps of threads: archive, audit, thread index; and recall from it."""
