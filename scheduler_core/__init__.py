"""The pure scheduler: an observation in, a plan out; no clock, no I/O, no global randomness."""
