//! What has become of a mutant.

use std::fmt::{self, Display};

pub(crate) enum Outcome {
    /// A test fails with it and passes without it.
    Test {
        stage: String,
        test: String,
    },
    Crashed {
        stage: String,
    },
    NotInTime {
        stage: String,
    },
    Survived,
}

impl Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Test { stage, test } => write!(f, "caught by {stage}: {test}"),
            Outcome::Crashed { stage } => write!(f, "caught by {stage}: its process ends"),
            Outcome::NotInTime { stage } => write!(f, "caught by {stage}: it does not end in time"),
            Outcome::Survived => write!(f, "SURVIVED"),
        }
    }
}
