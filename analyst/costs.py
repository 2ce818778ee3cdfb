"""Hold every price of the search in one place: 0 is certain, 1 is a guess, 3 is a word that was not understood."""

from typing import Final

# The most that a reading may cost to be answered: the dial between wrong answers and declines.
GOOD: Final = 1.5

# Each meaning, so that one long span is cheaper than two short ones of the same worth.
LINK: Final = 0.05
# Times what a name's likeness lacks to 1: a synonym (0.88) costs 0.24, a mere beginning (0.8) 0.4.
MISFIT: Final = 2.0
# A name that fits two columns of one table equally well, and neither wholly.
RIVAL_NAME: Final = 0.3
# A word of grammar that carries no condition; an operation of the same words costs the same.
GRAMMAR: Final = 0.03
# A noun that says nothing: record, thing, item.
IDLE_WORD: Final = 0.2
# A verb that only carries the sentence.
VERB: Final = 0.3
# A participle that stands as a state (the *paid* invoices): it is a condition that nothing explains.
STATE: Final = 2.0
# A word that only closes a noun: the email *address*, the *code* of a product.
TAIL: Final = 0.08
# Words that are a value as they stand.
VALUE: Final = 0.1
# Words that are a value in another number: rocks, Rock.
VALUE_FORM: Final = 0.3
# A name that is part of a value.
VALUE_PART: Final = 0.45
# Added to a value or part of one that is written like a common word.
COMMON_WORD: Final = 0.4
# Added to a part of a value of a table beside the one that is asked about, which nothing names.
UNNAMED_PART: Final = 0.4
# The same where the table is further away: dearer than a decline.
FAR_PART: Final = 1.6
# A column of flags meant as a condition.
FLAG: Final = 0.05
# A bare number.
NUMBER: Final = 0.05
# A number of four digits after a word of time.
YEAR: Final = 0.02
# A number of four digits that may be a year, with nothing that says so.
LOOSE_YEAR: Final = 0.3
# Passing over a noun that is a table's own name.
DROPPED_TABLE: Final = 1.2
# A word that nothing explains: more than any answer may cost.
UNKNOWN: Final = 3.0
# A name, a quoted text or a number that nothing explains.
UNKNOWN_NAME: Final = 6.0

# Each table that a reading uses beyond its first.
TABLE: Final = 0.3
# Each join beyond the one that a further table needs anyway.
STEP: Final = 0.25
# A way between two tables that only point at the same third one.
ZIGZAG: Final = 3.0
# Two tables that no key connects.
APART: Final = 4.0
# A join that two keys offer, with nothing that prefers one.
RIVAL_KEY: Final = 0.9
# A count over a join that repeats rows: counted distinct.
FAN_OUT: Final = 0.6

# A column that nobody named, the only one that may be meant.
GUESSED: Final = 0.5
# The same where another column would do as well.
RIVAL: Final = 0.9
# A number with a unit beside a column whose unit nobody told.
UNKNOWN_UNIT: Final = 0.6
# Each word between a number or function and its column.
FAR: Final = 0.06
# A sum or count that the question implies without a word for it.
IMPLIED: Final = 0.15
# An operation (most, total, than) that found nothing to work on.
IDLE: Final = 1.6
# A table that is named and used for nothing but that it has rows.
UNUSED_TABLE: Final = 0.6
# A question with a clause that says something of the rows, which ends as a list of all of them.
EVERY_ROW: Final = 1.6
# A reading that is possible but rarely meant.
ODD: Final = 0.8
# Adding up what says something of each row: prices, ages, years.
NOT_SUMMED: Final = 1.0
# Going on from the query before where nothing in the question says so.
PRIOR: Final = 0.4
