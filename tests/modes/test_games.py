"""A quiz and a game of werewolf: what code decides, and what a player must not know."""

import re
from collections.abc import Callable, Sequence

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from longtable.base.errors import ConfigError
from longtable.graph import Conversation, Persona, Team
from longtable.memory.messages.marks import mark_of
from longtable.modes import Quiz, Werewolf
from longtable.modes.werewolf import SEER, WOLF
from longtable.nodes.team.mode_hook import MODE
from tests.nodes.team.test_team import Say, speaker, talk
from tests.support.models import call, sent_of

PLAYERS = [Persona(name) for name in ("ada", "ben", "cleo", "dan", "eve", "finn", "gil", "hana")]


def quiz_talk(questions: int) -> Conversation:
    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        if name != "Quizmaster":
            return f"{name} says 42"
        tools = [message for message in messages[-3:] if message.type == "tool"]
        rules = messages[0].text
        if "Check each answer" in rules and not tools:
            return call("score", "s1", player="ada", points=1, why="right")
        if "with pose_question" in rules and (not tools or tools[-1].name == "score"):
            return call("pose_question", "p1", question="What is six times seven?")
        return "Six times seven?"

    return talk(
        say,
        Team(Persona("quizmaster"), Persona("ada"), Persona("ben"), mode=Quiz(questions=questions)),
    )


def test_a_quizmaster_asks_scores_by_tool_and_the_quiz_ends_by_itself() -> None:
    conversation = quiz_talk(2)
    first = conversation.ask("Let us begin.")
    assert [each["voice"] for each in first.voices] == ["quizmaster"]
    second = conversation.ask("I say 41.")
    assert [each["voice"] for each in second.voices] == ["ada", "ben", "quizmaster", "narrator"]
    assert second.text == "Scores after 2 of 2 questions: Ada 1"
    assert conversation.ask("I say 42.").text == "Scores after 2 of 2 questions: Ada 2"
    assert mark_of([m for m in conversation.history() if mark_of(m, MODE)][-1], MODE) == {
        "name": "quiz",
        "asked": 2,
        "scores": {"ada": 2},
        "over": True,
    }
    after = conversation.ask("@ada, well played?")
    assert [each["voice"] for each in after.voices] == ["ada"]


def test_players_of_a_quiz_do_not_hear_each_other_and_the_quizmaster_hears_all() -> None:
    conversation = quiz_talk(3)
    conversation.ask("Let us begin.")
    conversation.ask("I say 41.")
    requests = {
        speaker(request): str([message.text for message in request])
        for request in sent_of(conversation)
    }
    assert "Ada says" not in requests["Ben"]
    assert "Ada says 42" in requests["Quizmaster"]
    assert "Ben says 42" in requests["Quizmaster"]


def voting() -> Say:
    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        votes = "Now vote" in messages[0].text
        if votes and messages[-1].type != "tool":
            alive = re.findall(
                r"(\w+) \(", messages[0].text.partition("Alive: ")[2].partition(".")[0]
            )
            return call("vote", player=next(id_ for id_ in alive if id_ != name.lower()))
        return f"{name} {'votes' if votes else 'suspects somebody'}"

    return say


def test_werewolf_is_played_to_its_end_by_code() -> None:
    conversation = talk(voting(), Team(*PLAYERS, mode=Werewolf(seed=3), max_calls=60))
    texts: list[str] = []
    for _ in range(10):
        answer = conversation.ask("The next day.")
        texts.append(answer.text)
        if " won." in answer.text:
            break
    assert re.search(r"The (village|werewolves) (has|have) won\. The roles: Ada", texts[-1]), texts
    after = conversation.ask("@ada, what did you think?")
    assert [each["voice"] for each in after.voices] == ["ada"]
    days = [
        mark_of(message, MODE)
        for message in conversation.history(limit=200)
        if mark_of(message, MODE)
    ]
    assert [len(day["alive"]) for day in days] == sorted(
        (len(day["alive"]) for day in days), reverse=True
    )
    assert all(set(day) == {"name", "day", "alive", "over"} for day in days)


def test_what_a_player_must_not_know_is_in_none_of_its_views_and_in_no_export() -> None:
    mode = Werewolf(seed=3)
    conversation = talk(voting(), Team(*PLAYERS, mode=mode, max_calls=60))
    conversation.ask("The first day.")
    conversation.ask("The second day.")
    roles = mode._roles([persona.id for persona in PLAYERS])
    assert sorted(roles.values()).count(WOLF) == 2
    for request in sent_of(conversation):
        me, text = speaker(request).lower(), str([message.text for message in request])
        assert re.findall(r"You are a (\w+)", text) == [roles[me]]
        assert ("other werewolves" in text) == (roles[me] == WOLF)
        assert ("In night 1 you saw" in text) == (roles[me] == SEER)
    kept = str(conversation.history(limit=200)) + str(list(conversation.export("jsonl")))
    assert not re.search(r"You are a |you saw|other werewolves", kept)
    for persona in PLAYERS:
        assert "You are a " not in str(list(conversation.view())), persona


def test_the_same_seed_draws_the_same_roles_and_another_seed_others() -> None:
    ids = [persona.id for persona in PLAYERS]
    assert Werewolf(seed=3)._roles(ids) == Werewolf(seed=3)._roles(ids[::-1])
    assert len({str(Werewolf(seed=seed)._roles(ids)) for seed in range(10)}) > 3


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Team(Persona("ada"), mode=Quiz()), "needs the persona 'quizmaster'"),
        (lambda: Quiz(questions=0), "1 to 100"),
        (lambda: Team(Persona("ada"), Persona("ben"), mode=Werewolf(seed=1)), "3 players or more"),
        (lambda: Werewolf(seed="x"), "seed is a whole number"),  # type: ignore[arg-type]  # what a person may write
    ],
)
def test_a_wrong_game_is_refused(make: Callable[[], object], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        make()


def errors_in(request: Sequence[BaseMessage]) -> list[str]:
    return [m.text for m in request if isinstance(m, ToolMessage) and m.status == "error"]


def test_a_quizmaster_that_has_asked_is_not_told_to_score_what_nobody_answered() -> None:
    conversation = quiz_talk(2)
    conversation.ask("Let us begin.")
    after_asking = sent_of(conversation)[-1]
    assert [m.name for m in after_asking if m.type == "tool"] == ["pose_question"]
    assert "Check each answer" not in after_asking[0].text


def test_points_are_for_players_that_exist_and_their_names_are_one() -> None:
    words = iter(["Bob", "ADA", "quizmaster", "Ada"])

    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        if name != "Quizmaster":
            return "42"
        last = messages[-1]
        if "Ask the first" in messages[0].text and last.type != "tool":
            early = call("score", "s0", player="ada", points=5, why="before anybody answered")
            pose = call("pose_question", "p1", question="Six times seven?").tool_calls
            return early.model_copy(update={"tool_calls": [*early.tool_calls, *pose]})
        if "Check each answer" in messages[0].text and (word := next(words, None)):
            return call("score", f"s-{word}", player=word, points=1, why="right")
        return "Six times seven?"

    team = Team(Persona("quizmaster"), Persona("ada"), Persona("ben"), mode=Quiz(questions=1))
    conversation = talk(say, team)
    conversation.ask("Let us begin.")
    assert "no question was asked before this turn" in errors_in(sent_of(conversation)[-1])[0]
    assert conversation.ask("42").text == "Scores after 1 of 1 questions: Ada 2"
    refused = errors_in(sent_of(conversation)[-1])
    assert "there is no player 'Bob'; the players are you, ada, ben" in refused[-2]
    assert "there is no player 'quizmaster'" in refused[-1]


def test_a_vote_for_somebody_who_does_not_live_is_an_error_to_the_model() -> None:
    tried: dict[str, list[str]] = {}

    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        if "Now vote" not in messages[0].text:
            return f"{name} suspects somebody"
        errors = errors_in(messages)
        tried[name] = errors
        if messages[-1].type != "tool":
            return call("vote", f"v1-{name}", player="Zoe")
        if len(errors) == 1 and "alive are" in messages[-1].text:
            return call("vote", f"v2-{name}", player="CLEO")
        return f"{name} has voted"

    conversation = talk(say, Team(*PLAYERS[:4], mode=Werewolf(seed=3), max_calls=60))
    answer = conversation.ask("The first day.")
    assert "Cleo was voted out" in answer.text
    assert all("nobody called 'Zoe' lives" in errors[0] for errors in tried.values()), tried
