//! The one loop that every controller runs in. Knows no kind.
