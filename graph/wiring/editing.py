"""Edits of a thread by a person, as in Studio: they either take effect or are refused."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot, StateUpdate

from longtable.base.concurrency import in_thread
from longtable.base.context import Context
from longtable.graph.changes import edited, writes_messages
from longtable.graph.wiring.step import OF_LANGGRAPH, Supersteps, as_sent, run_arguments
from longtable.nodes.state import Input, State, Update, applied, values_of, with_tally
from longtable.nodes.tally import tally_after_removals
from longtable.store.records.retired import ids_in_archive
from longtable.store.records.retired_store import StoreArchive

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from longtable.graph.wiring.answerers import ToolOffer


class Editable(CompiledStateGraph[State, Context, Input, State]):
    """A compiled graph in which an edit of a message by `update_state`, as in Studio, either takes
    effect or is refused; see `changes.edited`.

    The reducer cannot do this, because an edit looks the same there as the input of a run. Input
    that repeats the id of a message must not overwrite anything.
    """

    offer: "ToolOffer | None" = None
    """The tools that the graph offers its model."""

    def get_context_jsonschema(self) -> dict[str, Any] | None:
        """Return the schema of `Context`. Before a run, Agent Server drops fields that are not
        properties of this schema. This schema accepts every name as a property, so that a misspelt
        field reaches `Context` and is refused there.
        """
        schema = super().get_context_jsonschema() or {}
        return {**schema, "properties": AllProperties(schema.get("properties", {}))}

    def get_input_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """Return the schema of what a caller sends: the messages."""
        schema = super().get_input_jsonschema(config)
        properties = {"messages": schema["properties"]["messages"]}
        definitions = {
            name: each for name, each in schema.get("$defs", {}).items() if name != "Tally"
        }
        return {**schema, "properties": properties, "$defs": definitions}

    def get_output_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """Return the schema of what a run returns, which are the channels in `output_channels`."""
        schema = super().get_output_jsonschema(config)
        shown = {*self.output_channels}
        properties = {
            name: each for name, each in schema.get("properties", {}).items() if name in shown
        }
        return {**schema, "properties": properties}

    def stream(self, *args: Any, **kwargs: Any) -> Any:
        sent, named = self._run_arguments(args, kwargs)
        if self._takes_out(sent, named):
            state = self.get_state(named["config"])
            sent = _with_tally_of_rest(sent, values_of(state))
        return super().stream(sent, **named)

    def astream(self, *args: Any, **kwargs: Any) -> Any:
        sent, named = self._run_arguments(args, kwargs)
        if self._takes_out(sent, named):
            return self._astream_of_rest(sent, named)
        return super().astream(sent, **named)

    async def _astream_of_rest(
        self, sent: Any, named: Mapping[str, Any]
    ) -> AsyncGenerator[Any, None]:
        state = await self.aget_state(named["config"])
        sent = _with_tally_of_rest(sent, values_of(state))
        stream = cast("AsyncGenerator[Any, None]", super().astream(sent, **named))
        async with aclosing(stream) as parts:
            async for part in parts:
                yield part

    def _run_arguments(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        filters_rows = getattr(self.builder, "rows", None) is not None
        stateless = self.checkpointer is None
        return run_arguments(args, kwargs, stateless=stateless, filters_rows=filters_rows)

    def _takes_out(self, sent: object, named: Mapping[str, Any]) -> bool:
        """Return whether the input of this run removes messages from a stored thread."""
        stored = isinstance(self.checkpointer, BaseCheckpointSaver)
        place = (named.get("config") or {}).get("configurable", {})
        own = "thread_id" in place and not place.get("checkpoint_ns")
        return stored and own and any(message.type == "remove" for message in as_sent(sent))

    def bulk_update_state(self, config: RunnableConfig, supersteps: Supersteps) -> RunnableConfig:
        edits = any(map(writes_messages, chain.from_iterable(supersteps)))
        return super().bulk_update_state(
            config,
            self._edited(config, supersteps, self.get_state(config)) if edits else supersteps,
        )

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Supersteps
    ) -> RunnableConfig:
        if any(map(writes_messages, chain.from_iterable(supersteps))):
            supersteps = await in_thread(
                self._edited, config, supersteps, await self.aget_state(config)
            )
        return await super().abulk_update_state(config, supersteps)

    def _edited(
        self, config: RunnableConfig, supersteps: Supersteps, state: StateSnapshot
    ) -> Supersteps:
        # Without a store nothing has retired.
        retired = partial(
            ids_in_archive,
            StoreArchive(cast("BaseStore", self.store)),
            config["configurable"]["thread_id"],
        )
        values = values_of(state)
        edited_steps: list[list[StateUpdate]] = []
        for step in supersteps:
            updates = [
                each._replace(values=edited(each.values or {}, values, retired))
                if writes_messages(each)
                else each
                for each in step
            ]
            values = _count_edited(values, updates)
            edited_steps.append(updates)
        return edited_steps


def _count_edited(values: State, updates: list[StateUpdate]) -> State:
    """Add the tally of a superstep to the last of its updates that writes messages. Return the
    values after the superstep.
    """
    last: int | None = None
    for place, update in enumerate(updates):
        if writes_messages(update):
            values = applied(values, with_tally(values, cast("Update", update.values)))
            last = place
    if last is not None:
        update = updates[last]
        updates[last] = update._replace(values={**(update.values or {}), "tally": values["tally"]})
    return values


class AllProperties(dict[str, Any]):
    """The properties of a schema. Every name counts as a property, except names that LangGraph
    itself uses.
    """

    def __contains__(self, name: object) -> bool:
        ours = super().__contains__(name)
        return ours or not (name in OF_LANGGRAPH or str(name).startswith("__"))


def _with_tally_of_rest(sent: Mapping[str, Any], values: State) -> dict[str, Any]:
    """Return an input that removes messages, together with the tally of the messages that stay."""
    tally = tally_after_removals(values, sent["messages"])
    return {"messages": sent["messages"], **({"tally": tally} if tally is not None else {})}
