"""The histories, the same for all: plain talk, talk over tables, facts planted early. No randomness: a number makes a turn."""

import re

FACT = re.compile(r"fact \d+: [A-Z]{2}-\d{4}")
ROWS = re.compile(r"\b(\d+) rows\b")
CARRIERS = ("AA", "B6", "DL", "EV", "F9", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV")
SIZES = (8, 20, 4, 60, 12, 20, 35, 6, 90, 16)
"""Rows that the questions over tables look up, in turn: 80 to 1,500 tokens."""


def plain(n: int) -> str:
    """Return a question of some 35 tokens that needs no tool."""
    return (
        f"How did the departure delay of {CARRIERS[n % 13]} develop over {1950 + n % 75}, which months stood out, "
        f"and was the change from month {n % 12 + 1} on larger than that of {CARRIERS[n % 7]}?"
    )


def over_tables(n: int) -> str:
    """Return a question that looks up a table."""
    return f"Show me {SIZES[n % len(SIZES)]} rows of flights of {CARRIERS[n % 13]} in {1950 + n % 75}, and say what stands out."


def planting(n: int, *, fillers: int) -> str:
    """Return a user message that states fact `n`, with so many sentences around it."""
    return " ".join([f"{fact(n)}.", *(f"The report for line {n} names reason {i} and its share of the delay." for i in range(fillers))])


def long_question(n: int) -> str:
    """Return a question of some 700 tokens, so that compactions come soon."""
    return " ".join([plain(n), *(f"Consider also reason {n * i} that the weather had." for i in range(60))])


def fact(n: int) -> str:
    """Return fact `n`: nothing in its words can be guessed from its number."""
    code = (n * 7_919 + 4_231) % 9_000 + 1_000
    return f"fact {n}: {chr(65 + n * 11 % 26)}{chr(65 + n * 17 % 26)}-{code}"


def table(rows: int) -> str:
    """Return rows as a tool gives them."""
    head = "carrier | flight | origin | dest | dep_delay | arr_delay"
    lines = [f"{CARRIERS[i % 13]} | {100 + i * 37 % 900} | JFK | LAX | {i * 13 % 120 - 9} | {i * 29 % 140 - 20}" for i in range(rows)]
    return "\n".join([head, *lines])


def answer(question: str) -> str:
    """Return an answer of some 60 tokens."""
    low, high = len(question) % 17 + 3, len(question) % 23 + 9
    return (
        f"Over the year the mean departure delay rose from {low}.4 to {high}.1 minutes; June, July and December stood out with "
        "means above 20 minutes, and the change after the named month was larger than that of the other carrier. "
        "The counts are large enough in each month to compare them."
    )
