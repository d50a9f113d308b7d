//! What a path may cost at most over a document, told before it is evaluated.
//!
//! Each `..` looks at a value once for each of its ancestors, each selector takes values once more, and a filter asks its own
//! queries of every value that it tests: a short path can take for ever. The bound is of the form of the path and the
//! size of the document, and never less than what the evaluation takes.

use serde_json::Value;

/// The most steps of an evaluation: values that are visited, tested or compared.
pub const MOST_STEPS: u64 = 10_000_000;

/// Where a query begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryOrigin {
    /// `$`
    Root,
    /// `@`
    Current,
}

/// The form of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct QueryShape {
    pub(super) segments: Vec<SegmentShape>,
}

/// The form of one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SegmentShape {
    /// Whether it goes down to all that is below.
    pub(super) descends: bool,
    /// How many selectors it has.
    pub(super) selectors: u64,
    /// Whether one of them can take more than one value of a list or an object.
    pub(super) spreads: bool,
    /// The queries of its filters.
    pub(super) asked: Vec<(QueryOrigin, QueryShape)>,
}

/// How large a document is.
#[derive(Clone, Copy)]
pub(super) struct DocumentSize {
    pub(super) values: u64,
    depth: u64,
}

impl DocumentSize {
    /// `below` is how deep the value itself stands.
    pub(super) fn of(value: &Value, below: u64) -> Self {
        let own = Self { values: 1, depth: below + 1 };
        let add = |sum: Self, value: &Value| {
            let more = Self::of(value, below + 1);
            Self { values: sum.values.saturating_add(more.values), depth: sum.depth.max(more.depth) }
        };
        match value {
            Value::Array(items) => items.iter().fold(own, add),
            Value::Object(fields) => fields.values().fold(own, add),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => own,
        }
    }
}

/// What is known of the values that a query has got to.
#[derive(Clone, Copy)]
struct Reached {
    /// How many there are.
    count: u64,
    /// How often the same one is among them.
    times: u64,
    /// How many of them lie within each other.
    within: u64,
}

impl Reached {
    const ONE: Self = Self { count: 1, times: 1, within: 1 };

    /// So many values with all that is in them.
    fn whole(self, size: DocumentSize) -> u64 {
        let each = self.times.saturating_mul(self.within).saturating_mul(size.values);
        self.count.saturating_mul(size.values).min(each)
    }
}

impl QueryShape {
    /// How many steps it takes at most over a document.
    pub(super) fn most_steps(&self, size: DocumentSize) -> u64 {
        self.steps(size, Reached::ONE)
    }

    fn steps(&self, size: DocumentSize, mut at: Reached) -> u64 {
        let mut steps: u64 = 0;
        for segment in &self.segments {
            if segment.descends {
                let times = at.times.saturating_mul(size.depth).min(at.count);
                at = Reached { count: at.whole(size), times, within: size.depth };
            }
            let selectors = segment.selectors.max(1);
            let taken = match segment.spreads {
                true => at.count.saturating_mul(size.values).min(at.times.saturating_mul(size.values)),
                false => at.count,
            };
            let next = Reached {
                count: taken.saturating_mul(selectors),
                times: at.times.saturating_mul(selectors),
                within: at.within,
            };
            steps = steps.saturating_add(at.count).saturating_add(next.count);
            for (origin, query) in &segment.asked {
                let asked = match origin {
                    QueryOrigin::Root => {
                        let one = query.steps(size, Reached::ONE).saturating_add(size.values);
                        next.count.saturating_mul(one)
                    }
                    QueryOrigin::Current => query.steps(size, next).saturating_add(next.whole(size)),
                };
                steps = steps.saturating_add(asked);
            }
            at = next;
        }
        steps
    }
}
