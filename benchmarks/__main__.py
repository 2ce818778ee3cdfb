"""Run every benchmark: python -m benchmarks."""

import importlib
import pkgutil

import benchmarks

for module in sorted(
    info.name
    for info in pkgutil.iter_modules(benchmarks.__path__)
    if info.name != "__main__" and not info.ispkg
):
    importlib.import_module(f"benchmarks.{module}").main()
    print()
