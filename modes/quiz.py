"""A quiz: a quizmaster asks and scores, while the other personas and the person play."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from langchain_core.tools import BaseTool, StructuredTool

from longtable.base.errors import ConfigError
from longtable.graph import CompactionPolicy, Mode, Persona, Scene

POSE = "pose_question"
SCORE = "score"
PERSON = "you"
"""The quizmaster's name for the person in front of the screen."""


class Quiz(Mode):
    """A quiz in which one persona is the quizmaster and asks, checks and scores with tools. The
    other personas and the person play.

    The person's first message begins the quiz. In each later turn, the players answer first: those
    whom the message mentions, or all if it mentions none. Then the quizmaster scores and asks the
    next question. There are `questions` questions. The state holds how many were asked (`asked`),
    the scores (`scores`), and whether the quiz is over (`over`).
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
        """Raise `ConfigError` if the quizmaster is not in the team, or if a persona has the name
        that stands for the person.
        """
        if self.quizmaster not in personas or PERSON in personas:
            raise ConfigError(
                f"a quiz needs the persona {self.quizmaster!r} and none called {PERSON!r}; found"
                f" {', '.join(personas)}"
            )

    def speakers(self, scene: Scene) -> Sequence[str]:
        """Return the personas that speak in this turn: the players who answer the open question,
        then the quizmaster. Once the quiz is over, these are the personas whom the message
        mentions, or all if it mentions none.
        """
        if scene.before(self.name).get("over"):
            return scene.addressed
        question_count = scene.before(self.name).get("asked", 0)
        players = [
            id_
            for id_ in scene.names
            if id_ in (scene.mentioned or scene.names) and id_ != self.quizmaster
        ]
        return [*(players if question_count else ()), self.quizmaster]

    def apart(self, persona: str) -> bool:
        """Return whether a persona is a player. A player does not hear the other players' answers
        of the turn.
        """
        return persona != self.quizmaster

    def whisper(self, scene: Scene, persona: str) -> str:
        """Return the rules and the task that a persona is told in this turn."""
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
        """Return the quizmaster's tools; none for other personas."""
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
        """Return the reason why the quizmaster may not ask or score now, "" if it may."""
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
        """Return the id of the player with this id or display name, "" if there is no such
        player.
        """
        if word.strip().casefold() == PERSON:
            return PERSON
        player = scene.persona(word)
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
        """Return the scores as a text, "" once the quiz is over."""
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
