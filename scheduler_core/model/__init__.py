"""The values that every stage of a scheduling cycle reads and writes: frozen, total-ordered, checked where they are made."""
