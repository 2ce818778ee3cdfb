"""Read questions that other programs and benchmarks wrote."""
