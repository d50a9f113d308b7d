//! When a deletion guard is taken away (ORC-36 … ORC-42).

/// What is known of an object that may be guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Whether it has the guard's finalizer.
    pub held: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether this operator guards anything.
    pub enabled: bool,
}

/// Whether the guard is taken away: the object is being deleted, and nobody refers to it, or guards are off. Until it is
/// deleted the guard stays, however often those who refer to it come and go: it costs one write.
pub fn lets_go(guard: Guard, is_in_use: impl FnOnce() -> bool) -> bool {
    guard.held && guard.deleting && (!guard.enabled || !is_in_use())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orc_37_a_guard_goes_from_what_is_to_go_and_has_no_referrers() {
        for (held, deleting, enabled, in_use, expected) in [
            (true, true, true, false, true),
            (true, true, true, true, false),
            (true, true, false, true, true),
            (true, false, true, false, false),
            (false, true, true, false, false),
        ] {
            let guard = Guard { held, deleting, enabled };
            assert_eq!(lets_go(guard, || in_use), expected, "{guard:?} {in_use}");
        }
    }
}
