"""Say which words speak of one kind of event: 'signed up' of a date of registration, 'scrapped' of a date of retirement."""

# ruff: noqa: E501 - word lists read best as long lines of plain words

from typing import Final

from longtable.app.offline.lexicon_abbreviations import ALTERNATIVES
from longtable.app.offline.text import lemma, stem

# Each row is one kind of event, in verbs of questions and words of columns alike; a word may be in several.
_ROWS: Final = """
    birth: born birth birthday dob birthdate birthed hatched
    death: died dead death deceased die
    joining: join joined joining member since registered register registration signup sign signed enrolled enrolment enrollment enroll enrol subscribed
        subscribe hired hire hiring employed employ recruited recruit appointed appoint start started onboarded onboard created admitted admit admission engaged
        entered arrived intake
    leaving: left leave leaving quit resigned resign departed terminated termination end ended exit exited fired dismissed retired retire until left
        resignation
    launch: launched launch launching released release introduced introduce published publish publication premiered premiere debuted debut aired issued opened
        listed
    opening: opened open opening founded found founding established establish inaugurated built build construction constructed construct created create launched
        launch start started began begun begin commissioned installed installation erected completed
    making: made make manufactured manufacture produced produce production built build painted paint written write wrote recorded composed compose created
        filmed printed brewed brew bottled bottle baked roasted distilled packed assembled completed
    closing: closed close closing shut ended end finished finish discontinued discontinue retired retire scrapped scrap decommissioned decommission withdrawn
        abandoned archived terminated
    buying: bought buy purchased purchase acquired acquire acquisition obtained obtain got received
    selling: sold sell sale selling
    sending: shipped ship shipping dispatched dispatch despatched sent send posted post mailed mail forwarded
    receiving: delivered deliver delivery arrived arrive arrival received receive receipt landed land came docked
    departing: departed depart departure left leave leaving sailed sail went took start started embarked
    ordering: ordered order placed place booked book booking reserved reserve reservation made requested request
    paying: paid pay payment settled settle paid
    billing: billed bill invoiced invoice issued issue charged
    reporting: reported report filed file filing raised raise lodged lodge submitted submit logged log opened open created recorded record noted registered
        received complained found seen sighted discovered happened occurred occur happen occurrence incident
    finishing: finished finish completed complete completion ended end done closed close resolved resolve resolution fixed fix repaired repair solved
    giving: gave given give donated donate donation contributed contribute contribution pledged pledge
    checking: inspected inspect inspection checked serviced service maintained maintenance tested test examined audited audit surveyed survey
        calibrated overhauled overhaul reviewed review repaired repair
    seeing: visited visit seen saw see attended attend attendance treated treat treatment appointment examined consulted consultation
    watching: watched watch viewed view viewing viewings streamed stream
    cancelling: cancelled cancel canceled cancellation
    returning: returned return back
    lending: borrowed borrow lent lend loaned loan checkout issued rented rent hired rental leased lease
    collecting: collected collect collection pickup pick picked fetched
    playing: played play match held hold hosted scheduled
    harvesting: harvested harvest reaped picked gathered caught catch landed fished
    planting: planted plant planting sown sow seeded
    adopting: adopted adopt adoption rehomed rescued rescue
    winning: won win awarded award
    expiring: expired expire expiry expires expiration due ends end lapse lapsed
    diagnosing: diagnosed diagnose diagnosis
    admitting: admitted admit admission
    discharging: discharged discharge released
    renewing: renewed renew renewal
    graduating: graduated graduate graduation
    promoting: promoted promote promotion
    flying: flew flown fly flight flights departed
    sitting: took taken take sat sit exam
    approving: approved approve approval accepted signed
    moving: moved move transferred transfer
    measuring: measured measure taken read reading sampled recorded
    marrying: married marry wedding
"""
_KINDS: Final[dict[str, frozenset[str]]] = {}
for _line in _ROWS.replace("\n        ", " ").strip().splitlines():
    _name, _, _words = _line.strip().partition(":")
    for _word in _words.split():
        _KINDS[_word] = _KINDS.get(_word, frozenset()) | {_name}

LIGHT_VERBS: Final = frozenset(
    """make made take took taken place placed get got give gave given come came go went see seen saw hold held record recorded happen happened occur occurred
    found send sent post back do done did match play start started begin began begun end ended open log logged check return issue note visit order book bill
    received receive raised raise collected report review measure listed created create attend list left flight exam read sign signed""".split()  # noqa: SIM905
)
"""Verbs too general, or nouns too common, to tell that another event is meant than a column's."""

ENDS: Final = frozenset(["leaving", "closing", "death", "selling"])
"""Kinds of events after which a thing or person is no longer there."""


def events(word: str) -> frozenset[str]:
    """Return the kinds of events that a word may speak of."""
    return _KINDS.get(word) or _KINDS.get(lemma(word)) or frozenset()


def events_of(words: tuple[str, ...]) -> frozenset[str]:
    """Return the kinds of events that the words of a column's name speak of."""
    return frozenset(kind for word in words for each in (word, *ALTERNATIVES.get(word, ())) for kind in events(each))


def same_event(verb: str, words: tuple[str, ...]) -> bool:
    """Say whether a verb and the words of a name speak of one kind of event."""
    told = {stem(each) for word in words for each in (word, *ALTERNATIVES.get(word, ()))}
    return bool(events(verb) & events_of(words)) or stem(verb) in told
