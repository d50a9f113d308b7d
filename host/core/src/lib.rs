//! Words, decisions and ports of Orangery. Pure: no clock, client, lock or randomness.
