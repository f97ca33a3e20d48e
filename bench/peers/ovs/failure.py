"""What ends the measurement, in words for people."""


class Failure(Exception):
    """A message for standard error; exit code 2."""
