"""Name the columns that tell where something is, and the things that others are at."""

from typing import Final

PLACES: Final = frozenset(
    "city country location address place state region town village venue site district county suburb municipality province".split()  # noqa: SIM905
)
SITES: Final = frozenset(
    """branch depot shop store office site practice hospital clinic school campus library station hub base department warehouse plant
    factory museum gallery room ward hangar port harbor farm field garden studio theater hall venue center gym restaurant kitchen lab
    laboratory facility building bureau desk terminal yard garage dock pond tank enclosure shelf aisle zone floor brewery bakery hotel
    airport stadium arena vineyard quay pier location place unit chapter""".split()  # noqa: SIM905
)
# Columns that people know a thing by when it has no name.
LABELS: Final = frozenset(
    """model plate address registration serial tag label subject headline reference sku isbn callsign hull tailnum tail vin imei
    barcode""".split()  # noqa: SIM905
)
# Ways in which people come, order and pay, that a column may hold as values though another column has that name: by phone, by post.
CHANNELS: Final = frozenset(
    """phone telephone email mail post web website app internet online card cash check fax letter chat sms text counter desk person store
    shop referral transfer mobile desktop tablet radio tv television courier pickup invoice voucher delivery truck train bus car air sea
    road rail ship boat bike foot hand door newspaper magazine walk newsletter leaflet flyer invitation subscription crypto paypal
    credit debit bank agent agency partner reseller event friend word""".split()  # noqa: SIM905
)
