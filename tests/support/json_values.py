"""Values that JSON may hold, for readers that must not raise whatever they are given."""

from collections.abc import Sequence

from hypothesis import strategies as st


def json_values(keys: Sequence[str]) -> st.SearchStrategy[object]:
    """Draw nested values whose objects have some of these keys."""
    return st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(keys), inner, max_size=5)
        ),
        max_leaves=25,
    )
