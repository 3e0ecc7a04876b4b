"""What made Spark fail, out of all that it says."""

from __future__ import annotations


def reason(error: Exception) -> str:
    """The last cause that says something, without traces."""
    lines = [line.strip().removeprefix(": ") for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("at ", "File ", "Traceback", "...", "==="))]
    for line in reversed(told):
        name, separator, text = line.partition(": ")
        is_named = name.startswith("ottla.") or name.endswith(("Error", "Exception"))
        if separator and " " not in name and is_named and not text.startswith("Traceback"):
            if text.startswith("["):  # Spark's own name of what happened, which says less than its text
                return text.partition("] ")[2].partition(" SQLSTATE: ")[0]
            return f"{name.split('.')[-1]}: {text}"
    return told[0] if told else type(error).__name__
