//! Where in an answer something makes no sense, and how large the answer is so far.

use std::{cell::Cell, fmt};

use orangery_core::memory;
use serde_json::Value;

use crate::{
    budget::{Budget, BudgetLimit},
    error::Error,
};

/// How many bytes of memory the values of an answer may take for each byte of `outputBytes`: three times what manifests need.
pub(crate) const MEMORY_OF_OUTPUT: u64 = 16;

/// What an answer may take in any case, in bytes of memory.
const LEAST_MEMORY: u64 = 1 << 20;

fn memory_of(budget: &Budget) -> u64 {
    budget.output_bytes.saturating_mul(MEMORY_OF_OUTPUT).max(LEAST_MEMORY)
}

/// What is left of the budget for the answer: bytes of it, and bytes of memory that its values take.
pub(super) struct Allowance<'a> {
    budget: &'a Budget,
    left: Cell<u64>,
    memory: Cell<u64>,
}

impl<'a> Allowance<'a> {
    pub(super) fn new(budget: &'a Budget) -> Self {
        Self { budget, left: Cell::new(budget.output_bytes), memory: Cell::new(memory_of(budget)) }
    }
}

/// A place in an answer, such as `stages[0].writes[1].object`.
#[derive(Clone, Copy)]
pub(super) struct AnswerPosition<'a> {
    parent: Option<&'a AnswerPosition<'a>>,
    name: &'a str,
    index: Option<usize>,
    allowance: &'a Allowance<'a>,
}

impl<'a> AnswerPosition<'a> {
    pub(super) fn root(name: &'a str, allowance: &'a Allowance<'a>) -> Self {
        Self { parent: None, name, index: None, allowance }
    }

    pub(super) fn field(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), name, index: None, allowance: self.allowance }
    }

    /// Each entry of a list, at its own place.
    pub(super) fn each<A, B>(
        &self,
        name: &str,
        entries: Vec<A>,
        convert: impl Fn(&AnswerPosition<'_>, A) -> Result<B, Error>,
    ) -> Result<Vec<B>, Error> {
        let mut converted = Vec::with_capacity(entries.len());
        for (index, entry) in entries.into_iter().enumerate() {
            let place = AnswerPosition { parent: Some(self), name, index: Some(index), allowance: self.allowance };
            converted.push(convert(&place, entry)?);
        }
        Ok(converted)
    }

    pub(super) fn nonsense(&self, why: impl Into<String>) -> Error {
        Error::Nonsense { at: self.to_string(), why: why.into() }
    }

    /// Counts bytes of the answer.
    pub(super) fn spend(&self, bytes: usize) -> Result<(), Error> {
        match self.allowance.left.get().checked_sub(bytes as u64) {
            Some(left) => {
                self.allowance.left.set(left);
                Ok(())
            }
            None => Err(Error::limit(BudgetLimit::Output, self.allowance.budget)),
        }
    }

    /// A JSON document.
    pub(super) fn json(&self, text: &str) -> Result<Value, Error> {
        self.spend(text.len())?;
        let bytes = memory::of_json(text);
        let Some(left) = self.allowance.memory.get().checked_sub(bytes) else {
            let most = memory_of(self.allowance.budget);
            return Err(self.nonsense(format!(
                "has so many small values that the answer takes more than the {most} bytes of memory that are allowed, \
                 {MEMORY_OF_OUTPUT} for each of outputBytes; answer fewer, or have an administrator raise `limits.outputBytes` of its registration, or of its Plugin"
            )));
        };
        self.allowance.memory.set(left);
        serde_json::from_str(text).map_err(|error| self.nonsense(format!("is not JSON: {error}")))
    }

    /// A JSON document, if there is one.
    pub(super) fn optional_json(&self, text: Option<&str>) -> Result<Option<Value>, Error> {
        text.map(|text| self.json(text)).transpose()
    }

    /// A name that may not be empty.
    pub(super) fn name(&self, name: String) -> Result<String, Error> {
        if name.is_empty() {
            return Err(self.nonsense("is empty"));
        }
        self.spend(name.len())?;
        Ok(name)
    }

    /// Opaque bytes.
    pub(super) fn bytes(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        self.spend(bytes.len())?;
        Ok(bytes)
    }
}

impl fmt::Display for AnswerPosition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}")?;
            if !parent.name.is_empty() {
                f.write_str(".")?;
            }
        }
        f.write_str(self.name)?;
        match self.index {
            Some(index) => write!(f, "[{index}]"),
            None => Ok(()),
        }
    }
}
