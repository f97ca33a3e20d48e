"""The errors that end a run, as messages for people."""


class Failure(Exception):
    """A message for standard error; exit code 2."""
