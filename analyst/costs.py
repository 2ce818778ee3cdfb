"""Give every price of the search by its name: `costs.UNKNOWN`; `data/prices.toml` holds them, each with what it is for."""

import tomllib
from importlib import resources

_PRICES: dict[str, float] = tomllib.loads((resources.files("longtable.analyst") / "data" / "prices.toml").read_text(encoding="utf-8"))


def __getattr__(name: str) -> float:
    if name not in _PRICES:
        raise AttributeError(name)
    return _PRICES[name]
