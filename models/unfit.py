"""What a model raises in its forward pass where the person's settings, and no defect, are at fault."""


class UnfitModel(ValueError):
    """A model can't take strings of this length, or a user's module can't run in a pack or on this device."""
