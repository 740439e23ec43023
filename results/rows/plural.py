"""Numbers in sentences."""


def counted(number: int, what: str) -> str:
    """Such as 1 layer, or 2 layers."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")
