"""The values that every stage of a scheduling cycle reads and writes: frozen, totally ordered, checked when made."""
