//! What evaluations may cost together.

use std::sync::atomic::{AtomicU64, Ordering};

use super::MOST_STEPS;

/// The most steps of all evaluations of one look at objects: values that are measured, visited, tested or compared.
pub const MOST_STEPS_TOGETHER: u64 = 3 * MOST_STEPS;

/// The steps that are left to the evaluations of one look at objects.
#[derive(Debug)]
pub struct StepBudget(AtomicU64);

/// No steps are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is not evaluated: together with those before it, it could take more than {MOST_STEPS_TOGETHER} steps over these objects; ask for \
     less of them, or divide the item"
)]
pub struct StepsExceeded;

impl Default for StepBudget {
    fn default() -> Self {
        Self(AtomicU64::new(MOST_STEPS_TOGETHER))
    }
}

impl StepBudget {
    /// Takes steps before they are made.
    ///
    /// # Errors
    /// There are not so many; then none are left.
    pub fn take(&self, steps: u64) -> Result<(), StepsExceeded> {
        let left = self.0.load(Ordering::Relaxed).checked_sub(steps);
        self.0.store(left.unwrap_or_default(), Ordering::Relaxed);
        left.map(drop).ok_or(StepsExceeded)
    }

    /// Whether none are left: nothing more is evaluated.
    pub fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Measures something, and takes the steps of that. Where none are left nothing is measured.
    ///
    /// # Errors
    /// There are not so many.
    pub fn measured<T>(&self, measure: impl FnOnce() -> T, steps: impl FnOnce(&T) -> u64) -> Result<T, StepsExceeded> {
        if self.is_spent() {
            return Err(StepsExceeded);
        }
        let measured = measure();
        self.take(steps(&measured))?;
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn c_297_where_no_steps_are_left_nothing_is_measured() {
        let (budget, measures) = (StepBudget::default(), Cell::new(0));
        let measured = |size: u64| {
            let measure = || {
                measures.set(measures.get() + 1);
                size
            };
            budget.measured(measure, |size| *size)
        };
        assert_eq!((measured(7), measured(MOST_STEPS_TOGETHER)), (Ok(7), Err(StepsExceeded)));
        assert_eq!((measured(1), measured(1), measures.get()), (Err(StepsExceeded), Err(StepsExceeded), 2));
        assert!(budget.is_spent() && !StepBudget::default().is_spent());
    }
}
