"""Amounts as a person says them: durations, hours of a device, bytes."""


def duration(seconds: float) -> str:
    """0.35 s, 4.2 s, 45 s, 12 min, 3.4 h, 2.1 days, 16 years."""
    if seconds < 9.95:
        return f"{seconds:.2g} s"
    for limit, unit, name in ((90, 1, "s"), (5400, 60, "min"), (172800, 3600, "h")):
        if seconds < limit:
            value = seconds / unit
            return f"{value:.1f} {name}" if name == "h" else f"{value:.0f} {name}"
    days = seconds / 86400
    if days >= 730:
        return f"{days / 365:,.0f} years"
    return f"{days:.1f} days" if days < 9.95 else f"{days:.0f} days"


def device_time(hours: float, device: str) -> str:
    """Time of one device: 42 core-seconds below a tenth of an hour, 3.4 core-hours above. device: core, GPU or slot."""
    seconds = hours * 3600
    if seconds >= 360:
        number, unit = f"{hours:,.0f}" if hours >= 100 else f"{hours:.2g}", "hour"
    else:
        number, unit = f"{seconds:.0f}" if seconds >= 9.95 else f"{seconds:.2g}", "second"
    return f"{number} {device}-{unit}{'' if number == '1' else 's'}"


def size(count: float) -> str:
    """Bytes, in powers of 1000: 0 bytes, 340 bytes, 58 KB, 5.8 MB, 120 GB."""
    value, unit = float(count), "bytes"
    for larger in ("KB", "MB", "GB", "TB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit == "bytes" or value >= 9.95 else f"{value:.1f} {unit}"
