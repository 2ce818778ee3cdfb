"""What benchmarks/memory.py is made of: talks, fake models, and one thread in each framework."""
