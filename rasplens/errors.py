"""The user's mistakes: what every error derives from that says what was wrong and what to do."""


class RaspLensError(ValueError):
    """Something that the user can mend; the message says what, in one line.

    The command line prints it alone and ends with exit code 2. Any other exception is a fault of RASPLens, and
    shows its traceback.
    """
