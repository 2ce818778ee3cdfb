"""The databases of the tests of tools."""

from tests.tools.conftest import database, databases, dialect, file_dialect, files, paths

__all__ = ["database", "databases", "dialect", "file_dialect", "files", "paths"]
