//! A fault of a port that may pass by itself: the guest is told its sentence, and the host remembers what it means.
//!
//! Whatever the guest makes of the sentence, an answer of such a call is not the one that it would give later.

use std::sync::{Arc, OnceLock};

use orangery_core::error::Fault;

/// The first fault of a call that may pass by itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Postponed(Arc<OnceLock<String>>);

impl Postponed {
    /// What the guest is told of a fault.
    pub(super) fn tell(&self, fault: Fault) -> String {
        let sentence = fault.to_string();
        if let Fault::Later(_) = fault {
            self.0.get_or_init(|| sentence.clone());
        }
        sentence
    }

    /// The sentence of the first one, if there was one.
    pub(crate) fn why(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use orangery_core::error::Code;

    use super::*;

    #[test]
    fn only_what_may_pass_is_remembered_and_the_first_of_it() {
        let call = Postponed::default();
        assert_eq!(call.tell(Fault::denied("no")), "no");
        assert_eq!(call.tell(Fault::invalid(Code::ConfigurationProblem, "wrong")), "wrong");
        assert_eq!(call.why(), None);
        assert_eq!(call.clone().tell(Fault::later(Code::Timeout, "slow")), "slow");
        assert_eq!(call.tell(Fault::later(Code::Timeout, "slower")), "slower");
        assert_eq!(call.why(), Some("slow"));
    }
}
