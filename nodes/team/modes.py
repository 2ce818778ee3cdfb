"""Modes: a workflow, a quiz, and werewolf. Steps, scores, roles, phases, votes and the end are
computed from the transcript, by code.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool

from longtable.base.errors import ConfigError
from longtable.memory.messages.rounds import all_calls
from longtable.memory.policy import CompactionPolicy
from longtable.nodes.team.team import JUDGED, Mode, Persona, Scene, is_answer, persona_named

STEPS = ("analyst", "checker", "reviewer")
SEND_BACK = "send_back"
TASK_CHARS = 2_000
ARTEFACT_CHARS = 4_000
"""Characters of the task and of each step's artefact that an answer's mark keeps; the transcript
has the whole.
"""
POSE = "pose_question"
SCORE = "score"
VOTE = "vote"
PERSON = "you"
"""How the quizmaster names the person in front of the screen."""
FEWEST_PLAYERS = 3
WOLF = "werewolf"
SEER = "seer"
VILLAGER = "villager"
SHARE_OF_WOLVES = 4
"""Players for each werewolf."""


@dataclass(frozen=True)
class _Progress:
    """How far a turn is. `place`: of the step that is next; `reason`: why the work was sent back
    last.
    """

    place: int = 0
    sent_back: int = 0
    reason: str = ""
    artefacts: Mapping[str, str] = field(default_factory=dict)


class Workflow(Mode):
    """Steps in order, each by the persona of its name or the one that `roles` gives. Mentions are
    ignored.

    The first user message is the task, later ones are numbered follow-ups. The last step has the
    tool `send_back`, which begins again at an earlier step, at most `send_back` times a turn. Its
    state: `task`, `follow_ups`, `current_node` (the step that is next, "" at the end), `sent_back`
    and `artefacts` (the newest answer of each step). Where the last step may send work back, its
    answer is a verdict: the turn's text is the first step's answer with the verdict below it.
    """

    name: ClassVar[str] = "workflow"

    def __init__(
        self,
        *steps: str,
        roles: Mapping[str, str] | None = None,
        send_back: int = 2,
        policy: CompactionPolicy | None = None,
    ) -> None:
        self.steps = steps or STEPS
        self.roles = dict(roles or {})
        self.policy = policy
        if len(set(self.steps)) != len(self.steps) or not set(self.roles) <= set(self.steps):
            raise ConfigError(
                "a workflow has different steps, and roles for these alone; found steps"
                f" {self.steps}, roles {self.roles}"
            )
        if (
            isinstance(send_back, bool)
            or not isinstance(send_back, int)
            or not 0 <= send_back <= 10
        ):
            raise ConfigError(f"send_back is a whole number from 0 to 10, found {send_back!r}")
        self.most = send_back if len(self.steps) > 1 else 0

    def check(self, personas: Mapping[str, Persona]) -> None:
        """Raise `ConfigError` for a step that nobody does."""
        if missing := [step for step in self.steps if self._persona(step) not in personas]:
            there = ", ".join(personas)
            raise ConfigError(
                f"nobody does the workflow's {', '.join(missing)}: the team has {there}; add a"
                " persona or name one in roles"
            )

    def next(self, scene: Scene) -> str | None:
        """Return the persona of the next step."""
        place = self._progress(scene).place
        return self._persona(self.steps[place]) if place < len(self.steps) else None

    def whisper(self, scene: Scene, persona: str) -> str:  # noqa: ARG002
        """Return the step and the task."""
        now = self._progress(scene)
        state = self.state(scene)
        if now.place >= len(self.steps):
            return ""
        lines = [
            f"Your step is {self.steps[now.place]}, {now.place + 1} of {len(self.steps)}:"
            f" {', '.join(self.steps)}."
        ]
        if state["follow_ups"]:
            lines.append(
                f"The person's newest message is follow-up {state['follow_ups']} of the task:"
                f" {state['task']}"
            )
        if now.reason:
            lines.append(f"The work was sent back: {now.reason} Correct what is yours of it.")
        if now.place == len(self.steps) - 1 and self.most:
            left = f"You may call {SEND_BACK}; times left: {self.most - now.sent_back}."
            lines.append(
                left if now.sent_back < self.most else "The work can no longer be sent back."
            )
        return "\n".join(lines)

    def tools(self, persona: str) -> Sequence[BaseTool]:
        """Return `send_back` for the last step."""
        if not self.most or persona != self._persona(self.steps[-1]):
            return ()

        def send_back(reason: str, to: str = "") -> str:
            """Send the work back to an earlier step, with what is to be corrected. Then answer with
            a sentence; the step begins again.
            """
            if to and to not in self.steps[:-1]:
                raise ValueError(
                    f"there is no earlier step {to!r}; the steps are {', '.join(self.steps[:-1])}"
                )
            return f"The work goes back to {to or self.steps[0]}: {reason}"

        return [StructuredTool.from_function(send_back, name=SEND_BACK)]

    def objection(
        self,
        scene: Scene,
        persona: str,  # noqa: ARG002
        tool: str,
        args: Mapping[str, Any],  # noqa: ARG002
    ) -> str:
        """Return why the work cannot be sent back, "" if it can."""
        if tool != SEND_BACK or self._progress(scene).sent_back < self.most:
            return ""
        return (
            f"not sent back: it was {self.most} times in this turn, which is the most. Answer with"
            " what there is, and say what is lacking"
        )

    def state(self, scene: Scene) -> dict[str, Any]:
        """Return task, follow-ups, the step that is next and what each step has made."""
        before = scene.before(self.name)
        now = self._progress(scene)
        return {
            "task": before.get("task") or scene.question[:TASK_CHARS],
            "follow_ups": before["follow_ups"] + 1 if before else 0,
            "current_node": self.steps[now.place] if now.place < len(self.steps) else "",
            "sent_back": now.sent_back,
            "artefacts": {**before.get("artefacts", {}), **now.artefacts},
            **({JUDGED: self._persona(self.steps[0])} if self.most else {}),
        }

    def _persona(self, step: str) -> str:
        return self.roles.get(step, step)

    def _progress(self, scene: Scene) -> _Progress:
        place = sent_back = 0
        reason = ""
        artefacts = dict[str, str]()
        args = dict[str | None, dict[str, Any]]()
        back: dict[str, Any] | None = None
        for message in scene.of_turn:
            if isinstance(message, AIMessage):
                args |= {call["id"]: call["args"] for call in all_calls(message)}
            if (
                isinstance(message, ToolMessage)
                and message.name == SEND_BACK
                and message.status == "success"
            ):
                back = args.get(message.tool_call_id)
            elif is_answer(message) and place < len(self.steps):
                artefacts[self.steps[place]] = str(message.text)[:ARTEFACT_CHARS]
                place += 1
                if back and place == len(self.steps) and sent_back < self.most:
                    place = self.steps.index(back.get("to") or self.steps[0])
                    reason = str(back["reason"])
                    sent_back = sent_back + 1
                back = None
        return _Progress(place, sent_back, reason, artefacts)


class Quiz(Mode):
    """A quizmaster asks, checks the answers and scores them, by tools; the other personas and the
    person play.

    The person's first message begins the quiz. A turn is: the players answer (those whom the
    message mentions, else all), then the quizmaster scores and asks the next question, `questions`
    in all. Its state: `asked` and `scores`.
    """

    name: ClassVar[str] = "quiz"
    together = True
    private = True

    def __init__(
        self,
        quizmaster: str = "quizmaster",
        *,
        questions: int = 5,
        policy: CompactionPolicy | None = None,
    ) -> None:
        if (
            isinstance(questions, bool)
            or not isinstance(questions, int)
            or not 1 <= questions <= 100
        ):
            raise ConfigError(f"questions is a whole number from 1 to 100, found {questions!r}")
        self.quizmaster = quizmaster
        self.questions = questions
        self.policy = policy

    def check(self, personas: Mapping[str, Persona]) -> None:
        """Raise `ConfigError` where the quizmaster is not in the team, or somebody has the person's
        name.
        """
        if self.quizmaster not in personas or PERSON in personas:
            raise ConfigError(
                f"a quiz needs the persona {self.quizmaster!r} and none called {PERSON!r}; found"
                f" {', '.join(personas)}"
            )

    def speakers(self, scene: Scene) -> Sequence[str]:
        """Return who answers the open question, the quizmaster last; once the quiz is over, those
        whom the message mentions, else all.
        """
        if scene.before(self.name).get("over"):
            return _whoever(scene)
        question_count = scene.before(self.name).get("asked", 0)
        players = [
            id_
            for id_ in scene.names
            if id_ in (scene.mentioned or scene.names) and id_ != self.quizmaster
        ]
        return [*(players if question_count else ()), self.quizmaster]

    def apart(self, persona: str) -> bool:
        """Return whether a persona plays: the quizmaster hears all answers."""
        return persona != self.quizmaster

    def whisper(self, scene: Scene, persona: str) -> str:
        """Return the rules."""
        if scene.before(self.name).get("over"):
            return "The quiz is over: talk about it freely."
        asked = scene.before(self.name).get("asked", 0)
        if persona != self.quizmaster:
            return (
                "This is a quiz: answer the quizmaster's newest question, briefly. You do not see"
                " what the others answer."
            )
        players = ", ".join([PERSON, *(id_ for id_ in scene.names if id_ != self.quizmaster)])
        if not asked:
            return (
                f"You lead a quiz for {players}. Ask the first of {self.questions} questions with"
                f" {POSE}, then say it."
            )
        score = (
            f"Check each answer to question {asked} and give its points with {SCORE}; the"
            f" players are {players}."
        )
        if asked < self.questions:
            return (
                f"{score} Then ask question {asked + 1} of {self.questions} with {POSE},"
                " and say who was right, and the question."
            )
        return f"{score} It was the last: say who was right, and who has won."

    def tools(self, persona: str) -> Sequence[BaseTool]:
        """Return the quizmaster's tools."""
        if persona != self.quizmaster:
            return ()

        def pose_question(question: str) -> str:
            """Ask the players a question. You know how to check its answer, by a query where there
            is a database.
            """
            return f"Asked: {question}"

        def score(player: str, points: int, why: str) -> str:
            """Give a player points for the answer to the open question, 0 for a wrong one."""
            if not 0 <= points <= 10:
                raise ValueError(f"points are 0 to 10, found {points}")
            return f"{player}: {points}. {why}"

        return [
            StructuredTool.from_function(pose_question, name=POSE),
            StructuredTool.from_function(score, name=SCORE),
        ]

    def objection(self, scene: Scene, persona: str, tool: str, args: Mapping[str, Any]) -> str:
        """Return why the quizmaster may not ask or score now, "" if it may."""
        asked = scene.before(self.name).get("asked", 0)
        if tool == POSE and asked >= self.questions:
            return f"not asked: all {self.questions} questions were"
        if tool == POSE and persona in {voice for voice, _ in scene.calls(POSE)}:
            return "not asked: this turn has its question; the players answer it in the next turn"
        if tool != SCORE:
            return ""
        if not asked:
            return "no points: no question was asked before this turn, and nobody has answered"
        player = str(args.get("player", ""))
        if self._player(player, scene):
            return ""
        players = ", ".join([PERSON, *(id_ for id_ in scene.names if id_ != self.quizmaster)])
        return f"no points: there is no player {player!r}; the players are {players}"

    def _player(self, word: str, scene: Scene) -> str:
        """Return the id of the player with this id or display name, "" if nobody has it."""
        if word.strip().casefold() == PERSON:
            return PERSON
        player = persona_named(word, scene.names)
        return "" if player == self.quizmaster else player

    def state(self, scene: Scene) -> dict[str, Any]:
        """Return how many questions were asked, the scores, and whether the quiz is over."""
        before = scene.before(self.name)
        scores = Counter[str](before.get("scores", {}))
        for voice, args in scene.calls(SCORE):
            if voice == self.quizmaster:
                player = str(args["player"])
                scores[self._player(player, scene) or player] += int(args["points"])
        posed = sum(voice == self.quizmaster for voice, _ in scene.calls(POSE)) > 0
        question_count = min(self.questions, before.get("asked", 0) + posed)
        over = before.get("asked", 0) >= self.questions and self.quizmaster in {
            voice for voice, _ in scene.answers
        }
        return {
            "asked": question_count,
            "scores": dict(scores),
            "over": before.get("over", False) or over,
        }

    def close(self, scene: Scene) -> str:
        """Return the scores; nothing once the quiz is over."""
        if scene.before(self.name).get("over"):
            return ""
        state = self.state(scene)
        scores = ", ".join(
            f"{scene.names.get(player, player)} {points}"
            for player, points in Counter(state["scores"]).most_common()
        )
        return (
            f"Scores after {state['asked']} of {self.questions} questions: {scores}"
            if scores
            else ""
        )


def _whoever(scene: Scene) -> list[str]:
    """Return those whom the user mentions, else all."""
    return [id_ for id_ in scene.names if id_ in (scene.mentioned or scene.names)]


@dataclass(frozen=True)
class _Day:
    """One turn of werewolf. `killed`: at night; `players`: who lived when the day began; `out`:
    whom the vote sent away.
    """

    number: int
    roles: Mapping[str, str]
    killed: str
    players: Sequence[str]
    out: str = ""

    @cached_property
    def alive(self) -> list[str]:
        """Return who lives at the end of the day."""
        return [id_ for id_ in self.players if id_ != self.out]

    def winner(self, alive: Sequence[str]) -> str:
        """Return who has won where so many live: "village", "werewolves", or "" for nobody yet."""
        wolves = sum(self.roles[id_] == WOLF for id_ in alive)
        return "village" if not wolves else "werewolves" if 2 * wolves >= len(alive) else ""


class Werewolf(Mode):
    """Personas play werewolf; the person watches, and each message of theirs is the next day.

    Roles are drawn by `seed`: a werewolf for every four players, a seer where there are four, else
    villagers. At night code draws the victim, and one player whose role the seer is whispered; by
    day all who live speak, then vote with the tool `vote`. What a player must not know is in no
    message: it is drawn again from the seed for each whisper. The state holds the day and who
    lives.
    """

    name: ClassVar[str] = "werewolf"
    private = True

    def __init__(self, *, seed: int, policy: CompactionPolicy | None = None) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise ConfigError(f"seed is a whole number, found {seed!r}")
        self.seed = seed
        self.policy = policy

    def check(self, personas: Mapping[str, Persona]) -> None:
        """Raise `ConfigError` for fewer than three players."""
        if len(personas) < FEWEST_PLAYERS:
            raise ConfigError(
                f"werewolf needs {FEWEST_PLAYERS} players or more, found {len(personas)}"
            )

    def next(self, scene: Scene) -> str | None:
        """Return who speaks, then who votes; once the game is over, each of those whom the message
        mentions, else of all.
        """
        if scene.before(self.name).get("over"):
            done = {voice for voice, _ in scene.answers}
            return next((id_ for id_ in _whoever(scene) if id_ not in done), None)
        day = self._day(scene)
        if day.winner(day.players):
            return None
        times = Counter(voice for voice, _ in scene.answers)
        return next((id_ for phase in (0, 1) for id_ in day.players if times[id_] <= phase), None)

    def whisper(self, scene: Scene, persona: str) -> str:
        """Return what a player knows, and what is to be done now."""
        if scene.before(self.name).get("over"):
            return "The game of werewolf is over: talk about it freely."
        day = self._day(scene)
        role = day.roles.get(persona, VILLAGER)
        lines = [
            f"This is a game of werewolf, day {day.number}. You are a {role}."
            f" {self._night(scene, day)}"
        ]
        if role == WOLF:
            pack = [
                scene.names[id_]
                for id_, each in day.roles.items()
                if each == WOLF and id_ != persona
            ]
            lines.append(
                f"The other werewolves: {', '.join(pack) or 'none'}. Do not let the village find"
                " out."
            )
        if role == SEER:
            lines += [
                f"In night {night} you saw: {scene.names[card]} is a {day.roles[card]}."
                for night, card in self._seen(day)
            ]
        living = ", ".join(f"{id_} ({scene.names[id_]})" for id_ in day.players)
        voted = Counter(voice for voice, _ in scene.answers)[persona]
        task = (
            f"Now vote with the tool {VOTE}, and say why in a sentence."
            if voted
            else "Say whom you suspect, in two sentences."
        )
        return "\n".join([*lines, f"Alive: {living}.", task])

    def tools(self, persona: str) -> Sequence[BaseTool]:  # noqa: ARG002
        """Return the vote."""

        def vote(player: str) -> str:
            """Vote for the player who is to leave the village."""
            return f"You voted for {player}."

        return [StructuredTool.from_function(vote, name=VOTE)]

    def objection(
        self,
        scene: Scene,
        persona: str,  # noqa: ARG002
        tool: str,
        args: Mapping[str, Any],
    ) -> str:
        """Return why a vote does not count, "" if it does."""
        players = self._day(scene).players
        player = str(args.get("player", ""))
        if tool != VOTE or persona_named(player, scene.names) in players:
            return ""
        return f"no vote: nobody called {player!r} lives; alive are {', '.join(players)}"

    def state(self, scene: Scene) -> dict[str, Any]:
        """Return the day and who lives."""
        day = self._day(scene)
        return {
            "day": day.number,
            "alive": day.alive if day.out else list(day.players),
            "over": bool(day.winner(day.alive)),
        }

    def close(self, scene: Scene) -> str:
        """Return the night, the vote, and the end; nothing once the game is over."""
        if scene.before(self.name).get("over"):
            return ""
        day = self._day(scene)
        verdict = (
            f"{scene.names[day.out]} was voted out: a {day.roles[day.out]}."
            if day.out
            else "The vote sent nobody away."
        )
        winner = day.winner(day.alive)
        roles = ", ".join(f"{scene.names[id_]} {role}" for id_, role in day.roles.items())
        vote = "" if day.winner(day.players) else verdict
        end = (
            f"The {winner} {'has' if winner == 'village' else 'have'} won. The roles: {roles}."
            if winner
            else ""
        )
        return " ".join(filter(None, [self._night(scene, day), vote, end]))

    def _night(self, scene: Scene, day: _Day) -> str:
        return f"{scene.names[day.killed]} was killed in the night." if day.killed else ""

    def _day(self, scene: Scene) -> _Day:
        before = scene.before(self.name)
        number = before.get("day", 0) + 1
        roles = self._roles(list(scene.names))
        alive = [id_ for id_ in before.get("alive", scene.names) if id_ in scene.names]
        over = before.get("over", False)
        prey = [id_ for id_ in alive if roles[id_] != WOLF]
        killed = "" if over or not prey or number == 1 else self._draw("night", number).choice(prey)
        players = [id_ for id_ in alive if id_ != killed]
        votes = self._votes(scene, players)
        # With as many votes for two nobody goes.
        best = votes.most_common(2)
        out = (
            best[0][0] if best and (len(best) == 1 or best[0][1] > best[1][1]) and not over else ""
        )
        done = Counter(voice for voice, _ in scene.answers)
        return _Day(
            number, roles, killed, players, out if all(done[id_] > 1 for id_ in players) else ""
        )

    def _votes(self, scene: Scene, players: Sequence[str]) -> Counter[str]:
        """Return how many votes each player has: the newest of each who lives, for one who
        lives.
        """
        newest = {
            voice: persona_named(str(args["player"]), scene.names)
            for voice, args in scene.calls(VOTE)
            if voice in players
        }
        return Counter(player for player in newest.values() if player in players)

    def _roles(self, ids: Sequence[str]) -> dict[str, str]:
        wolves = max(1, len(ids) // SHARE_OF_WOLVES)
        shuffled = sorted(ids)
        self._draw("roles", len(ids)).shuffle(shuffled)
        seer = shuffled[wolves] if len(ids) > FEWEST_PLAYERS else ""
        return {
            id_: WOLF if id_ in shuffled[:wolves] else SEER if id_ == seer else VILLAGER
            for id_ in ids
        }

    def _seen(self, day: _Day) -> list[tuple[int, str]]:
        """Return whom the seer has seen in each night."""
        others = [id_ for id_, role in day.roles.items() if role != SEER]
        return [
            (night, self._draw("seer", night).choice(others)) for night in range(1, day.number + 1)
        ]

    def _draw(self, what: str, number: int) -> random.Random:
        return random.Random(f"{self.seed} {what} {number}")  # a game's dice
