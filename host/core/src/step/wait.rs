//! What a waiting object waits for, as data and as the message of its conditions.

use crate::name::{Kind, Namespace, ObjectName};
use std::{collections::BTreeSet, fmt, time::Duration};

/// How many of the things waited for a status names.
pub const LISTED: usize = 16;

/// The longest text of one field of what a status names, in bytes; no name of Kubernetes is longer.
const LONGEST_TEXT: usize = 253;

/// What a waiting object waits for: objects, a time, or both. There is no wait for nothing (ORC-08).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    on: BTreeSet<Waiting>,
    poll: Option<Duration>,
    /// Whether the object is deleted when the job has ended that waits.
    is_before_deletion: bool,
}

/// How the message ends of a job that keeps the deletion of its object from beginning (C-212).
pub const BEFORE_DELETION: &str = "; it is being deleted, which begins when this job has ended";

/// One thing waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waiting {
    /// Its kind.
    pub kind: Kind,
    /// Where it is.
    pub location: Location,
    /// Which one it is.
    pub which: Awaited,
    /// What must become of it.
    pub until: Until,
    /// Why that has not happened yet; part of the message alone.
    pub detail: Option<String>,
}

/// Where a thing is that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
    /// Beside the object that waits: in the cluster of the operator and in the same namespace, which [`Wait::in_namespace`]
    /// fills in. The message does not name the namespace.
    Beside(Option<Namespace>),
    /// On a cluster that a deploy item deploys to; `None` where the kind has no namespaces.
    Target(Option<Namespace>),
    /// Nowhere: it is no object, but a gate expression, a finalizer or the limit of the host.
    Nowhere,
}

impl Location {
    /// The namespace, where it is in one.
    pub fn namespace(&self) -> Option<&Namespace> {
        match self {
            Location::Beside(namespace) | Location::Target(namespace) => namespace.as_ref(),
            Location::Nowhere => None,
        }
    }
}

/// Which thing is waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Awaited {
    /// The one of this name.
    Name(String),
    /// Any that is selected so, in words: nobody knows their names yet.
    Selection(String),
}

/// What must become of a thing that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Until {
    /// It exists.
    Exists,
    /// It is ready.
    Ready,
    /// It has finished its job.
    Finished,
    /// It is gone.
    Gone,
    /// It is met, as a gate expression is.
    Met,
    /// It has room for one more.
    Room,
    /// Somebody approves it.
    Approved,
    /// It is known what it is about to write.
    Planned,
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Until::Exists => "to exist",
            Until::Ready => "to become ready",
            Until::Finished => "to finish",
            Until::Gone => "to be gone",
            Until::Met => "to be met",
            Until::Room => "to have room",
            Until::Approved => "to be approved",
            Until::Planned => "to be planned",
        })
    }
}

impl Until {
    const ALL: [Until; 8] = [
        Until::Exists,
        Until::Ready,
        Until::Finished,
        Until::Gone,
        Until::Met,
        Until::Room,
        Until::Approved,
        Until::Planned,
    ];

    /// The word of `until` in a status.
    pub fn as_str(self) -> &'static str {
        match self {
            Until::Exists => "Exists",
            Until::Ready => "Ready",
            Until::Finished => "Finished",
            Until::Gone => "Gone",
            Until::Met => "Met",
            Until::Room => "Room",
            Until::Approved => "Approved",
            Until::Planned => "Planned",
        }
    }

    /// What a word of a status means; `None` for a word that this version does not know.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|until| until.as_str() == word)
    }
}

impl Waiting {
    /// An object beside the one that waits.
    pub fn beside(kind: impl Into<Kind>, name: impl Into<String>, until: Until) -> Self {
        Self::new(kind, Location::Beside(None), Awaited::Name(name.into()), until)
    }

    /// An object of a target cluster; `None` where its kind has no namespaces.
    pub fn target(kind: &Kind, namespace: Option<Namespace>, name: &ObjectName, until: Until) -> Self {
        Self::new(kind, Location::Target(namespace), Awaited::Name(name.as_str().to_owned()), until)
    }

    /// Any object of a target cluster that is selected so, in words; `None` stands for all namespaces.
    pub fn selected(kind: &Kind, namespace: Option<Namespace>, selection: String, until: Until) -> Self {
        Self::new(kind, Location::Target(namespace), Awaited::Selection(selection), until)
    }

    /// Something that is no object.
    pub fn nowhere(kind: impl Into<Kind>, name: impl Into<String>, until: Until) -> Self {
        Self::new(kind, Location::Nowhere, Awaited::Name(name.into()), until)
    }

    /// The same, and why it has not happened yet.
    pub fn because(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }

    fn new(kind: impl Into<Kind>, location: Location, which: Awaited, until: Until) -> Self {
        Self { kind: kind.into(), location, which, until, detail: None }
    }

    /// As a status names it: without the detail, and no longer than names may be.
    fn listed(&self) -> Self {
        let within = |namespace: &Option<Namespace>| namespace.as_deref().map(|name| Namespace::from(cut(name)));
        Self {
            kind: cut(&self.kind).into(),
            location: match &self.location {
                Location::Beside(namespace) => Location::Beside(within(namespace)),
                Location::Target(namespace) => Location::Target(within(namespace)),
                Location::Nowhere => Location::Nowhere,
            },
            which: match &self.which {
                Awaited::Name(name) => Awaited::Name(cut(name)),
                Awaited::Selection(selection) => Awaited::Selection(cut(selection)),
            },
            until: self.until,
            detail: None,
        }
    }
}

fn cut(text: &str) -> String {
    text.get(..text.floor_char_boundary(LONGEST_TEXT)).unwrap_or_default().to_owned()
}

/// As messages name it: `Job default/migrate to finish`.
impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        match (&self.which, &self.location) {
            (Awaited::Name(name), Location::Target(Some(namespace))) => write!(f, "{namespace}/{name}")?,
            (Awaited::Name(text) | Awaited::Selection(text), _) => f.write_str(text)?,
        }
        if let Some(detail) = &self.detail {
            write!(f, " ({detail})")?;
        }
        write!(f, " {}", self.until)
    }
}

impl From<Waiting> for Wait {
    fn from(waiting: Waiting) -> Self {
        Self { on: BTreeSet::from([waiting]), poll: None, is_before_deletion: false }
    }
}

impl Wait {
    /// Whether somebody has to approve something.
    pub fn awaits_approval(&self) -> bool {
        self.on.iter().any(|waiting| waiting.until == Until::Approved)
    }

    /// Waiting for one object beside the one that waits.
    pub fn on(kind: impl Into<Kind>, name: impl Into<String>, until: Until) -> Self {
        Waiting::beside(kind, name, until).into()
    }

    /// Waiting for each of these; `None` where there are none.
    pub fn each(on: impl IntoIterator<Item = Waiting>) -> Option<Self> {
        let on: BTreeSet<Waiting> = on.into_iter().collect();
        (!on.is_empty()).then_some(Self { on, poll: None, is_before_deletion: false })
    }

    /// Waiting for what nobody can watch: called again after this long (ORC-09).
    pub fn poll(after: Duration) -> Self {
        Self { on: BTreeSet::new(), poll: Some(after), is_before_deletion: false }
    }

    /// The same wait, called again after this long at the latest.
    pub fn within(mut self, limit: Duration) -> Self {
        self.poll = Some(self.poll.map_or(limit, |poll| poll.min(limit)));
        self
    }

    /// The same wait of an object in this namespace.
    pub fn in_namespace(self, namespace: &Namespace) -> Self {
        let named = |waiting: Waiting| match waiting.location {
            Location::Beside(_) => Waiting { location: Location::Beside(Some(namespace.clone())), ..waiting },
            Location::Target(_) | Location::Nowhere => waiting,
        };
        Self { on: self.on.into_iter().map(named).collect(), ..self }
    }

    /// The same with these words for why each has not happened yet.
    pub fn with_details(self, words: impl Fn(&str) -> String) -> Self {
        let worded = |waiting: Waiting| Waiting { detail: waiting.detail.as_deref().map(&words), ..waiting };
        Self { on: self.on.into_iter().map(worded).collect(), ..self }
    }

    /// The same wait of a job that ends before the deletion of its object begins.
    #[must_use]
    pub fn before_deletion(self) -> Self {
        Self { is_before_deletion: true, ..self }
    }

    /// What is waited for, and what must become of it.
    pub fn objects(&self) -> &BTreeSet<Waiting> {
        &self.on
    }

    /// What a status names of it: each once, the first [`LISTED`] of them; then how many more there are.
    pub fn listed(&self) -> (Vec<Waiting>, usize) {
        let listed: BTreeSet<Waiting> = self.on.iter().map(Waiting::listed).collect();
        let more = listed.len().saturating_sub(LISTED);
        (listed.into_iter().take(LISTED).collect(), more)
    }

    /// After how long it is called again, an event apart.
    pub fn again_in(&self) -> Option<Duration> {
        self.poll
    }

    /// The reason of the conditions: `WaitingFor<Kind>` of the first object.
    pub fn reason(&self) -> String {
        match self.on.first() {
            Some(waiting) => format!("WaitingFor{}", waiting.kind),
            None => "Waiting".to_owned(),
        }
    }

    pub(super) fn join(&mut self, other: Wait) {
        self.on.extend(other.on);
        self.poll = [self.poll, other.poll].into_iter().flatten().min();
    }
}

/// Stable between reconciles: sorted, no times.
impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;
        f.write_str("waiting for ")?;
        for (index, waiting) in self.on.iter().take(SHOWN).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{waiting}")?;
        }
        match self.on.len().saturating_sub(SHOWN) {
            0 if self.on.is_empty() => f.write_str("the next attempt")?,
            0 => {}
            more => write!(f, " and {more} more")?,
        }
        f.write_str(if self.is_before_deletion { BEFORE_DELETION } else { "" })
    }
}

#[cfg(test)]
mod tests;
