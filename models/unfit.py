"""The error that a forward pass raises where a person's settings are at fault, and not the code."""


class UnfitModel(ValueError):
    """A model can't read these strings, or a user's module can't run in a pack or on this device."""
