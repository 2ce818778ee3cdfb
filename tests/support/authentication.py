"""Who asks a server under test: the header `x-user` says it, and `x-guest` that it is nobody who
was authenticated.
"""

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def user(headers: dict[bytes, bytes]) -> Auth.types.MinimalUserDict:
    """Return the user of a request."""
    return {
        "identity": headers.get(b"x-user", b"someone").decode(),
        "is_authenticated": headers.get(b"x-guest") != b"yes",
    }
