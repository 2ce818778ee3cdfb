"""Hold what each step of the search costs, in one place: 0 is certain, 1 is a guess, 3 is a word that was not understood."""

from typing import Final

LINK: Final = 0.05
"""Each link, so that one long span is cheaper than two short ones of the same worth."""
MISFIT: Final = 2.0
"""Times what a name's likeness lacks to 1: a synonym (0.88) costs 0.24, a mere beginning (0.8) 0.4."""
NEAR_NAME: Final = 0.35
"""A name that is only like the raw letters of a column (act_dt for 'activated')."""
VALUE: Final = 0.1
"""A word that is a value as it stands."""
VALUE_FORM: Final = 0.25
"""A word that is a value in another form: plural, inflected, hyphenated."""
VALUE_PART: Final = 0.7
"""A name that is only part of a value."""
ONE_OF_MANY: Final = 0.5
"""Added where it is part of other values too: which of them is meant nobody said."""
VALUE_KIN: Final = 0.45
"""A word of the family of a value (failed: fail)."""
FLAG: Final = 0.25
"""A flag column meant as a condition."""
NUMBER: Final = 0.05
"""A bare number or time."""
YEAR: Final = 0.02
"""A number of four digits after a word of time."""
LOOSE_YEAR: Final = 0.25
"""A number of four digits that may be a year, with nothing that says so."""
GRAMMAR: Final = 0.03
"""A word of grammar that carries no condition: an operation of the same words is cheaper."""
VERB: Final = 0.3
"""A verb or noun that only carries the sentence: passed over, but rather a value if it may be one."""
ADDED_WORD: Final = 0.08
"""A word that only closes a noun: the email *address*, the phone *number*."""
STATE: Final = 0.3
"""Added to a verb that stands as a state ('registered members'), which may well be a condition."""
STRANGE_STATE: Final = 1.2
"""A verb as the state of a table that nobody named: products that were shipped, where orders are."""
DROPPED_TABLE: Final = 1.2
"""Passing over a plural noun that is a table's own name."""
KIN: Final = 1.0
"""A key from a table to itself: who is whose boss is beyond this reader."""
MODIFIER: Final = 0.8
"""A noun in no vocabulary that only tells more of the column after it: the parking spots of a zone."""
UNKNOWN_VERB: Final = 0.55
"""A verb in no vocabulary that stands where it can only carry the sentence."""
ODD: Final = 0.8
"""A number as the value of a column of texts, a group with nothing computed: possible, but rarely meant."""
PRONOUN: Final = 0.05
"""A pronoun: it must stand for something of the same question."""
UNUSED: Final = 3.0
"""A word that nothing explains: more than any likely reading costs, so that the question is declined."""
UNUSED_NAME: Final = 6.0
"""A name, a quoted text or a number that nothing explains."""

TABLE: Final = 0.3
"""Each table that a reading uses beyond its first."""
STEP: Final = 0.3
"""Each join beyond the one that a further table needs anyway: far-away links are unlikely."""
APART: Final = 4.0
"""Two tables that no key connects."""
FAR: Final = 0.06
"""Each word between a number and the column that it is given to."""
GUESSED_COLUMN: Final = 0.5
"""A number, date or rank whose column nobody named: the only one that may be meant."""
RIVAL_COLUMN: Final = 0.9
"""The same where another column would do as well."""
IMPLIED_SUM: Final = 0.1
"""A sum that 'how much' or 'most' implies without a word for it."""
IDLE: Final = 1.2
"""An operation (most, total, each) that found nothing to work on."""
LOST_TABLE: Final = 0.25
"""A table named and used for nothing but a join that changes nothing."""
WIDE: Final = 0.6
"""A question with conditions that ends as a list of every row."""

GOOD: Final = 1.6
"""The most that a reading may cost to be answered."""
SURE: Final = 0.5
"""Below this nothing better is looked for."""
SURER: Final = 0.6
"""The most that a reading may cost to be taken instead of the first reader's answer."""
NEAR: Final = 0.1
"""A reading that costs no more beside the best speaks for the first reader, if it reads the same."""
GOOD_LATER: Final = 0.4
"""The most in a later turn, where what sounds whole may still lean on the turn before."""
MARGIN: Final = 0.02
"""How much cheaper than a reading of another shape the best must be."""
