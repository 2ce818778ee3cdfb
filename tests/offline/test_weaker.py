"""A second reading that says less than the first does not replace it."""

import pytest

from longtable.app.offline.logic import Agg, Col, Compare, Join, Null, Order, Query, Within
from longtable.app.offline.weaker import says_less

NAME, CITY, PRICE, SHOP_ID = Col("shop", "name"), Col("shop", "city"), Col("sale", "price"), Col("sale", "shop_id")
LINK = (Join("sale", ((Col("shop", "id"), SHOP_ID),)),)
COUNT = Agg("count")
DEAR = Compare(PRICE, ">", 0)


@pytest.mark.parametrize(
    ("first", "found"),
    [
        (Query("sale", select=(PRICE,), where=(DEAR,)), Query("sale", select=(PRICE,))),
        (Query("shop", where=(Compare(NAME, "=", "Orion"),)), Query("shop", LINK, where=(Compare(NAME, "=", "Orion"),))),
        (Query("sale", (Join("shop", ()),), (NAME, PRICE), order=(Order(PRICE),), limit=1), Query("sale", select=(PRICE,), limit=1)),
        (Query("sale", where=(Compare(SHOP_ID, "=", 39),)), Query("sale", where=(Compare(PRICE, "=", 39),))),
        (Query("shop", select=(NAME, COUNT), group=(NAME,)), Query("shop", select=(COUNT,))),
        (
            Query("shop", select=(CITY, COUNT), group=(CITY,), order=(Order(COUNT, True),), limit=1),
            Query("shop", order=(Order(CITY, True),), limit=1),
        ),
        (Query("shop", select=(NAME,)), Query("shop", select=(NAME, CITY))),
    ],
)
def test_less_is_no_better(first: Query, found: Query) -> None:
    assert says_less(found, first)


@pytest.mark.parametrize(
    ("first", "found"),
    [
        (Query("sale", select=(PRICE,), order=(Order(PRICE, True),), limit=1), Query("sale", select=(Agg("max", PRICE),))),
        (Query("shop", where=(Compare(NAME, "<>", "Y"),)), Query("shop", where=(Compare(NAME, "=", "N"),))),
        (
            Query("shop", where=(Within(Col("shop", "id"), Query("sale", LINK, (SHOP_ID,)), True), Null(NAME)), select=(COUNT,)),
            Query("shop", where=(Null(NAME),), select=(COUNT,)),
        ),
        (
            Query("shop", where=(Compare(NAME, "=", "atm"),), select=(CITY, COUNT), group=(CITY,)),
            Query("shop", select=(CITY,), order=(Order(Col("shop", "atm_count"), True),), limit=1),
        ),
        (
            Query("shop", LINK, (CITY, PRICE, COUNT), group=(CITY, PRICE)),
            Query("shop", select=(CITY, Agg("sum", Col("shop", "sales"))), group=(CITY,)),
        ),
    ],
)
def test_a_reading_of_another_shape_may_be_better(first: Query, found: Query) -> None:
    assert not says_less(found, first)
