//! What calls cost, for whoever measures components.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// What code of components counts while it runs. Code that counts is other code, compiled apart and slower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CodeCounts {
    /// Nothing: as it runs for the operator.
    #[default]
    Nothing,
    /// Its steps, which are the same in every run.
    Fuel,
}

/// What one call has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCost {
    /// How long making the instance took.
    pub instantiate: Duration,
    /// How long the exported function took, answers of the host included.
    pub call: Duration,
    /// Bytes of linear memory in the end.
    pub memory: u64,
    /// Steps; 0 where the code does not count them.
    pub fuel: u64,
}

/// The costs of the calls of a sandbox. Clones have the same.
#[derive(Clone, Debug, Default)]
pub struct CallCosts {
    pub(crate) counts: CodeCounts,
    costs: Arc<Mutex<Vec<CallCost>>>,
}

impl CallCosts {
    /// Of calls whose code counts this.
    pub fn of(counts: CodeCounts) -> Self {
        Self { counts, costs: Arc::default() }
    }

    /// Those of the calls that have ended since the last time, the first one first.
    pub fn take(&self) -> Vec<CallCost> {
        std::mem::take(&mut *self.costs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn add(&self, cost: CallCost) {
        self.costs.lock().unwrap_or_else(PoisonError::into_inner).push(cost);
    }
}
