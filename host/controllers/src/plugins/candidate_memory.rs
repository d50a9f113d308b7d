//! What one call for a Plugin leaves of its candidate for the next one.

/// What is known of the candidate of a Plugin from the calls before.
#[derive(Clone, Debug, Default)]
pub(super) struct CandidateMemory {
    /// For which generation, beside which component it was loaded or tried last.
    pub(super) tried: Option<(i64, String)>,
    /// The digest of the component that it is called beside; `None` where it is not called.
    pub(super) beside: Option<String>,
    /// Why it is not called.
    pub(super) why: Option<String>,
}
