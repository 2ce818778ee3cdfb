"""kill -9 in the middle of a turn: the thread opens, nothing stored is lost, the turn is resumed or
another is asked.
"""

import random
import signal
import tempfile
from functools import cache
from pathlib import Path

import pytest

from longtable.base.errors import ProviderRefusedError
from longtable.graph import Conversation, open_persistence
from tests.memory.messages.test_rounds import assert_paired
from tests.support import doomed
from tests.support.doomed import CONTEXT, FOLDING, TIGHT, graph_on, question

WRITES = 26
"""Passes of the checkpointer in one turn with one tool call (before and after each write); the last
test checks it.
"""
POINTS = sorted(random.Random(7).sample(range(WRITES), 20))


@pytest.mark.parametrize("which", [2, "asked"])
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_turn_is_resumed_or_followed_and_nothing_is_lost(
    point: int, which: int | str, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/chat.db"
    done = doomed.run(url, point, which)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert "asked 2" in done.stdout
    first_turn = ["question 1", "", "3", "answer to question 1"]
    with open_persistence(url) as kept:
        conversation = Conversation(graph_on(kept.checkpointer, kept.store), "t", context=CONTEXT)
        stored = stored_messages(conversation)
        if point // 2 % 2:
            conversation.resume()
            assert not conversation.pending()
            expected = (
                [*first_turn, "question 2", "", "3", "answer to question 2"]
                if "question 2" in stored
                else first_turn
            )
            assert [m.text for m in conversation.history()] == expected
        conversation.ask("question 3")
        texts = [str(m.text) for m in conversation.history()]
        assert texts[:4] == first_turn
        assert texts[-4:] == ["question 3", "", "3", "answer to question 3"]
        assert texts.count("question 2") == ("question 2" in stored)
        assert_paired(conversation.view()[1:])


def stored_messages(conversation: Conversation) -> str:
    """Return all the checkpointer holds of the thread's newest checkpoint, as text: also input no
    node has seen yet.
    """
    saver = conversation.graph.checkpointer
    assert saver is not None
    assert not isinstance(saver, bool)
    found = saver.get_tuple(conversation.config)
    state = conversation.graph.get_state(conversation.config)
    return f"{found} {state.values}"


@pytest.mark.parametrize("which", [2, "asked"])
def test_the_points_cover_a_whole_turn(which: int | str, tmp_path: Path) -> None:
    done = doomed.run(f"sqlite:///{tmp_path}/chat.db", 10_000, which)
    assert done.returncode == 0, done.stderr
    assert f"survived {WRITES} writes" in done.stdout


REFUSED_WRITES = 16
"""Passes of the checkpointer in a turn that the provider refuses at its first call."""


@pytest.mark.parametrize("point", [*range(0, REFUSED_WRITES, 2), 10_000])
def test_a_kill_while_a_refused_turn_is_closed_leaves_a_thread_that_goes_on(
    point: int, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/chat.db"
    done = doomed.run(url, point, "refused")
    assert done.returncode == (-signal.SIGKILL if point < REFUSED_WRITES else 0), done.stderr
    assert point < REFUSED_WRITES or f"survived {REFUSED_WRITES} writes" in done.stdout
    with open_persistence(url) as kept:
        conversation = Conversation(graph_on(kept.checkpointer, kept.store), "t", context=CONTEXT)
        if conversation.pending():
            with pytest.raises(ProviderRefusedError):
                conversation.resume()
        assert not conversation.pending()
        assert conversation.ask("question 3").text == "answer to question 3"
        texts = [m.text for m in conversation.history()]
        assert texts in ([*texts[:4], "poison", *texts[-4:]], [*texts[:4], *texts[-4:]])
        assert "poison" not in str(list(conversation.view()))


FOLDS, RETIRES = 11, 12
"""Turns of the tight talk after whose answer something is folded, and something retires."""


@cache
def writes_in(turn: int) -> int:
    """Return how many writes a tight talk's last turn has, once it is sure that this turn folds or
    retires something.
    """
    with tempfile.TemporaryDirectory() as folder:
        whole = doomed.run(f"sqlite:///{folder}/chat.db", 10_000, turn)
    assert f"{'context_compressed' if turn == FOLDS else 'messages_retired'} {turn}" in whole.stdout
    return int(whole.stdout.split("survived ")[1].split()[0])


@pytest.mark.parametrize("turn", [FOLDS, RETIRES])
@pytest.mark.parametrize("back", [1, 3, 4, 6, 8, 10])
def test_a_kill_while_the_next_turn_is_prepared_loses_and_doubles_nothing(
    turn: int, back: int, tmp_path: Path
) -> None:
    """`back`: how many writes before the end of the turn. The store is written before the
    transcript lets go.
    """
    url = f"sqlite:///{tmp_path}/chat.db"
    done = doomed.run(url, writes_in(turn) - back, turn)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with open_persistence(url) as kept:
        conversation = Conversation(
            graph_on(kept.checkpointer, kept.store, FOLDING), "t", context=TIGHT
        )
        if conversation.pending():
            conversation.resume()
        for n in range(turn + 1, turn + 5):
            conversation.ask(question(n, tight=True))
        history = conversation.history()
        assert [m.text for m in history if m.type == "human"] == [
            question(n, tight=True) for n in range(1, turn + 5)
        ]
        assert len(history) == 4 * (turn + 4) == len({m.id for m in history})
        assert_paired(conversation.view()[1:])
