"""A process that asks some of the sixty questions on a stored thread and prints each event as a
line of JSON.

python -m tests.support.talker STORE_URL DATABASE_URL LIMIT FIRST LAST
"""

import json
import sys

from longtable.analyst.model import BuiltInAnalyst
from longtable.graph import (
    CompactionPolicy,
    Context,
    Conversation,
    Database,
    build_graph,
    open_persistence,
)
from tests.support.flights_talk import TALK

# Sixty questions with their figures in memory: more than the default shares hold.
ROOMY = CompactionPolicy(summary_share=0.3)


def main(store: str, database: str, limit: int, first: int, last: int) -> None:
    """Ask questions `first` to `last`, from 1."""
    with Database.open(database) as data, open_persistence(store) as kept:
        app = build_graph(model=BuiltInAnalyst(), database=data, policy=ROOMY).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        conversation = Conversation(app, "flights", context=Context(model_limit=limit))
        for number in range(first, last + 1):
            for event in conversation.stream(TALK[number - 1].question):
                if event["type"] != "token":
                    print(json.dumps({"question": number, **event}, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))
