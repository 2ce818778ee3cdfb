"""The rule on masked columns: where they may stand, and what of a result is masked."""
