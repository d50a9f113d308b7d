//! What executions keep from one job to the next (`docs/wire.md` §4.7).

use std::collections::{BTreeMap, BTreeSet};

use orangery_blueprint::{Blueprint, rendering::ExecutionKind};
use orangery_core::{
    digest, memory,
    yaml::{self, YamlError},
};
use serde_json::Value;

/// The most bytes of memory that what the executions of one blueprint answer takes, with their states.
pub const MOST_ANSWERED_BYTES: u64 = 64 << 20;

/// Whose state it is: the list that an execution stands in, and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StateKey {
    /// The list.
    pub list: ExecutionKind,
    /// The execution.
    pub execution: String,
}

impl StateKey {
    /// Whose state an execution has; import executions and mappings have none.
    fn of(list: ExecutionKind, execution: &str) -> Option<Self> {
        match list {
            ExecutionKind::Deploy | ExecutionKind::Subinstallation | ExecutionKind::Export => {
                Some(Self { list, execution: execution.to_owned() })
            }
            ExecutionKind::Import | ExecutionKind::ImportMapping | ExecutionKind::ExportMapping => None,
        }
    }
}

/// Why a stored state cannot be used. The text is the end of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateFault {
    /// It cannot be read.
    #[error("{0}")]
    Yaml(#[from] YamlError),
    /// All states together have a limit.
    #[error("with the others it takes more than the {MOST_ANSWERED_BYTES} bytes of memory that are allowed")]
    TooLarge,
}

#[derive(Clone, Debug, PartialEq)]
struct StateFields {
    value: Value,
    /// As it is stored.
    text: String,
}

/// The states of one installation: as the last job left them, with what this job changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct States {
    states: BTreeMap<StateKey, StateFields>,
    changed: BTreeSet<StateKey>,
    /// The memory of those that were loaded.
    bytes: u64,
}

impl States {
    /// The executions of a blueprint that may have a state, in the order in which they are rendered.
    pub fn keys(of: &Blueprint) -> impl Iterator<Item = StateKey> + '_ {
        let lists = [
            (ExecutionKind::Subinstallation, &of.subinstallation_executions),
            (ExecutionKind::Deploy, &of.deploy_executions),
            (ExecutionKind::Export, &of.export_executions),
        ];
        lists.into_iter().flat_map(|(list, executions)| {
            executions.iter().filter_map(move |execution| StateKey::of(list, &execution.name))
        })
    }

    /// Puts in what an earlier job stored.
    ///
    /// # Errors
    /// It is no YAML, or the states that were loaded take too much memory together.
    pub fn load(&mut self, key: StateKey, stored: &[u8]) -> Result<(), StateFault> {
        let text = String::from_utf8_lossy(stored).into_owned();
        let value = yaml::decode(&text)?;
        self.bytes = self.bytes.saturating_add(memory::of(&value)).saturating_add(memory::of_text(text.len()));
        if self.bytes > MOST_ANSWERED_BYTES {
            return Err(StateFault::TooLarge);
        }
        self.states.insert(key, StateFields { value, text });
        Ok(())
    }

    /// What this job wants stored that was not so before, as text; each change is answered once.
    pub fn take_changed(&mut self) -> Vec<(StateKey, String)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().filter_map(|key| Some((key.clone(), self.states.get(&key)?.text.clone()))).collect()
    }

    /// Bytes of memory that those take which were loaded.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Every state there is, as a value.
    pub fn values(&self) -> impl Iterator<Item = (&StateKey, &Value)> {
        self.states.iter().map(|(key, state)| (key, &state.value))
    }

    /// What an execution gets.
    pub(crate) fn of(&self, list: ExecutionKind, execution: &str) -> Option<Value> {
        Some(self.states.get(&StateKey::of(list, execution)?)?.value.clone())
    }

    /// Keeps what came of an execution: the state that the component answered, or, of a text, its field `state`. What
    /// answers none leaves the state as it was.
    pub(crate) fn keep(&mut self, list: ExecutionKind, execution: &str, of: StateOutput<'_>) {
        let Some(key) = StateKey::of(list, execution) else { return };
        // The bytes are those that the original stores: of a template a JSON value, of Spiff a document.
        let kept = match (of.state, of.is_text) {
            (Some(value), true) => Some((value, digest::compact(value))),
            (None, true) => orangery_blueprint::state(of.document).map(|value| (value, digest::compact(value))),
            (Some(value), false) => Some((value, digest::compact(value) + "\n")),
            (None, false) => None,
        };
        let Some((value, text)) = kept else { return };
        if self.states.get(&key).is_none_or(|before| before.value != *value) {
            self.states.insert(key.clone(), StateFields { value: value.clone(), text });
            self.changed.insert(key);
        }
    }
}

/// What came of an execution, as far as its state goes.
pub(crate) struct StateOutput<'a> {
    /// What the component wants kept.
    pub(crate) state: Option<&'a Value>,
    /// Whether its output was text.
    pub(crate) is_text: bool,
    /// Its output, decoded.
    pub(crate) document: &'a Value,
}
