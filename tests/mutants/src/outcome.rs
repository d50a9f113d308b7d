//! What has become of a mutant.

use std::fmt::{self, Display};

pub(crate) enum Outcome {
    /// A test does not pass with it, and passes without it.
    Caught {
        suite: String,
        test: String,
        /// Whether the test ended, and did not run for ever.
        in_time: bool,
    },
    /// So many tests reach it, and all pass.
    Survived { passed: usize },
}

impl Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Caught { suite, test, in_time: true } => write!(f, "caught by {suite} {test}"),
            Outcome::Caught { suite, test, in_time: false } => {
                write!(f, "caught by {suite} {test}, which does not end")
            }
            Outcome::Survived { passed: 0 } => write!(f, "SURVIVED: no test reaches it"),
            Outcome::Survived { passed } => write!(f, "SURVIVED: {passed} tests reach it and pass"),
        }
    }
}
