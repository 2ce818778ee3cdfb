"""Werewolf: the personas play and the person watches."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from langchain_core.tools import BaseTool, StructuredTool

from longtable.base.errors import ConfigError
from longtable.graph import CompactionPolicy, Mode, Persona, Scene

VOTE = "vote"
FEWEST_PLAYERS = 3
WOLF = "werewolf"
SEER = "seer"
VILLAGER = "villager"
SHARE_OF_WOLVES = 4
"""There is one werewolf for this many players."""


@dataclass(frozen=True)
class _Day:
    """One day of the game, which is one turn. `killed` is the victim of the night before it,
    `players` are the players alive in the morning, and `out` is the player whom the vote sent away.
    `killed` and `out` may be "".
    """

    number: int
    roles: Mapping[str, str]
    killed: str
    players: Sequence[str]
    out: str = ""

    @cached_property
    def alive(self) -> list[str]:
        """Return the players alive at the end of the day."""
        return [id_ for id_ in self.players if id_ != self.out]

    def winner(self, alive: Sequence[str]) -> str:
        """Return the winner: "village", "werewolves", or "" if nobody has won yet."""
        wolves = sum(self.roles[id_] == WOLF for id_ in alive)
        return "village" if not wolves else "werewolves" if 2 * wolves >= len(alive) else ""


class Werewolf(Mode):
    """The personas play werewolf and the person watches. Each message of the person begins the next
    day.

    Roles are drawn from `seed`: one werewolf for every four players, a seer if there are at least
    four players, and villagers. Each night, code draws the victim, and a player whose role the seer
    is told in a whisper. By day all living players first speak, and then vote with the tool `vote`.
    Secrets are in no message, because they are drawn again from the seed for each whisper. The
    state holds the day and the living players.
    """

    name: ClassVar[str] = "werewolf"
    private = True

    def __init__(self, *, seed: int, policy: CompactionPolicy | None = None) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise ConfigError(f"seed is a whole number, found {seed!r}")
        self.seed = seed
        self.policy = policy

    def check(self, personas: Mapping[str, Persona]) -> None:
        """Raise `ConfigError` if there are fewer than three players."""
        if len(personas) < FEWEST_PLAYERS:
            raise ConfigError(
                f"werewolf needs {FEWEST_PLAYERS} players or more, found {len(personas)}"
            )

    def next(self, scene: Scene) -> str | None:
        """Return the next persona to speak, None if nobody is left. First every living player
        speaks, then every living player votes. Once the game is over, these are the personas whom
        the message mentions, or all if it mentions none.
        """
        if scene.before(self.name).get("over"):
            done = {voice for voice, _ in scene.answers}
            return next((id_ for id_ in scene.addressed if id_ not in done), None)
        day = self._day(scene)
        if day.winner(day.players):
            return None
        times = Counter(voice for voice, _ in scene.answers)
        silent = [id_ for id_ in day.players if not times[id_]]
        without_vote = [id_ for id_ in day.players if times[id_] <= 1]
        return next(iter([*silent, *without_vote]), None)

    def whisper(self, scene: Scene, persona: str) -> str:
        """Return what a player knows, and what the player must do now."""
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
        """Return the tool for voting."""

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
        """Return the reason why a vote does not count, "" if it counts."""
        players = self._day(scene).players
        player = str(args.get("player", ""))
        if tool != VOTE or scene.persona(player) in players:
            return ""
        return f"no vote: nobody called {player!r} lives; alive are {', '.join(players)}"

    def state(self, scene: Scene) -> dict[str, Any]:
        """Return the day and the living players."""
        day = self._day(scene)
        return {
            "day": day.number,
            "alive": day.alive if day.out else list(day.players),
            "over": bool(day.winner(day.alive)),
        }

    def close(self, scene: Scene) -> str:
        """Return a report on the night, the vote and the end of the game. Return "" once the game
        is over.
        """
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
        """Return how many votes each player has. Only the newest vote of each living player counts,
        and only if it is for a living player.
        """
        newest = {
            voice: scene.persona(str(args["player"]))
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
        """Return for each night the player whose role the seer saw."""
        others = [id_ for id_, role in day.roles.items() if role != SEER]
        return [
            (night, self._draw("seer", night).choice(others)) for night in range(1, day.number + 1)
        ]

    def _draw(self, what: str, number: int) -> random.Random:
        return random.Random(f"{self.seed} {what} {number}")  # a game's dice
