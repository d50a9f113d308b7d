//! Phases: one enum per kind, so that no object can be in a phase that its kind does not have, and one table each of
//! what follows what (EXE-05, INS-10, `docs/wire.md` §3.2).

use std::{fmt, hash::Hash};

use crate::step::Verdict;

pub mod execution;
pub mod installation;
pub mod item;

/// What the walk through phases needs to know of a kind's phases.
pub trait Phase: Copy + Eq + Hash + fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// The first phase of a job that brings about the spec.
    const INIT: Self;
    /// The first phase of a job that deletes.
    const INIT_DELETE: Self;
    /// Where a failed job ends.
    const FAILED: Self;
    /// Where a failed deletion ends.
    const DELETE_FAILED: Self;

    /// The phase after this one; `None` after the last phase of a deletion: the object is released and vanishes.
    fn after(self, verdict: &Verdict) -> Option<Self>;
    /// Whether a job ends in this phase.
    fn is_final(self) -> bool;
    /// Whether this phase belongs to a deletion.
    fn is_deletion(self) -> bool;
    /// Whether children of this job may be at work in this phase, so that it must not end before they have (C-16).
    fn has_working_children(self) -> bool;
}

/// Declares the phases of a kind: the wire strings, and the table.
macro_rules! phases {
    (
        $(#[$meta:meta])* $name:ident, working: [$($working:ident),*],
        { $( $(#[$doc:meta])* $variant:ident $(=> $next:ident)? $(ends $end:ident)? ; )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $( $(#[$doc])* $variant, )+
        }

        impl $name {
            /// All phases, in the order of a job.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The wire string.
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$variant => stringify!($variant), )+ }
            }

            /// The phase of a wire string; `None` for an empty or unknown one.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|phase| phase.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::phase::Phase for $name {
            const INIT: Self = Self::Init;
            const INIT_DELETE: Self = Self::InitDelete;
            const FAILED: Self = Self::Failed;
            const DELETE_FAILED: Self = Self::DeleteFailed;

            fn after(self, verdict: &$crate::step::Verdict) -> Option<Self> {
                match verdict {
                    $crate::step::Verdict::Failed(_) if self.is_deletion() => Some(Self::DeleteFailed),
                    $crate::step::Verdict::Failed(_) => Some(Self::Failed),
                    $crate::step::Verdict::Done => match self {
                        $( Self::$variant => $crate::phase::phases!(@next $($next)? $($end)?), )+
                    },
                }
            }

            fn is_final(self) -> bool {
                matches!(self, Self::Succeeded | Self::Failed | Self::DeleteFailed)
            }

            fn is_deletion(self) -> bool {
                self >= Self::InitDelete
            }

            fn has_working_children(self) -> bool {
                let working: &[Self] = &[$(Self::$working),*];
                working.contains(&self)
            }
        }
    };
    (@next Gone) => { None };
    (@next Rest) => { None };
    (@next $next:ident) => { Some(Self::$next) };
}
pub(crate) use phases;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::error::Failure;

    /// The whole table of a kind as text: phase, after success, after failure.
    pub(crate) fn table<P: Phase>(all: &[P]) -> String {
        let show = |next: Option<P>| next.map_or("-".to_owned(), |phase| phase.to_string());
        all.iter().fold(String::new(), |text, phase| {
            let done = show(phase.after(&Verdict::Done));
            let failed = if phase.is_final() {
                "-".to_owned()
            } else {
                show(phase.after(&Verdict::Failed(Failure::new("", "", ""))))
            };
            let children = if phase.has_working_children() { " (children at work)" } else { "" };
            format!("{text}{phase} -> {done} | {failed}{children}\n")
        })
    }
}
