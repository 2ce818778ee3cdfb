"""Find a turn's question and the SQL that answered it, to keep both as a verified query."""

from collections.abc import Sequence
from itertools import chain

from langchain_core.messages import AIMessage, BaseMessage

from longtable.base.errors import NothingToKeepError
from longtable.memory.messages.marks import TABLES, marks_of, turn_number
from longtable.memory.messages.rounds import all_calls, is_users


def query_of_turn(messages: Sequence[BaseMessage], turn: int | None) -> tuple[str, str]:
    """Return the question of a turn, and the SQL of its last query that gave a result. If `turn` is
    None, it is the newest turn with such a query.

    Raises `NothingToKeepError` if there is none.
    """
    answered = [
        message
        for message in messages
        if TABLES in marks_of(message) and turn in (None, turn_number(message))
    ]
    if not answered:
        if turn is None:
            raise NothingToKeepError(
                "no turn of this thread ran a query that gave a result: ask one first"
            )
        raise NothingToKeepError(f"turn {turn} is not there or ran no query that gave a result")
    newest = answered[-1]
    number = turn_number(newest)
    of_turn = [
        message
        for message in messages
        if isinstance(message, AIMessage) and turn_number(message) == number
    ]
    calls = chain.from_iterable(map(all_calls, of_turn))
    call_id = getattr(newest, "tool_call_id", "")
    sql = next((str(call["args"].get("sql", "")) for call in calls if call["id"] == call_id), "")
    return question_of_turn(messages, number), sql


def question_of_turn(messages: Sequence[BaseMessage], turn: int | None) -> str:
    """Return the question of a turn, or of the newest if `turn` is None.

    Raises `NothingToKeepError` if there is none.
    """
    questions = [each for each in messages if is_users(each) and turn in (None, turn_number(each))]
    if not questions:
        raise NothingToKeepError(
            "there is no question to keep: ask one first, or name another turn"
        )
    number = turn_number(questions[-1])
    return next(str(each.text) for each in questions if turn_number(each) == number)
