"""An object that shows that it was unpickled."""


class Bomb:
    """Unpickled, it creates a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")
