//! What is known of a value before it is computed.

use cel::common::ast::{LiteralValue, operators};
use serde_json::Value;

/// What is known of a value before it is computed.
#[derive(Clone, Copy)]
pub(super) enum Extent<'a> {
    /// It is this one.
    Known(&'a Value),
    /// It is this key of a map.
    Key(&'a str),
    /// It is this whole number.
    Count(u64),
    /// It is this boolean.
    Truth(bool),
    /// It is at most as large.
    Bound(SizeBound),
}

/// How large a value can be.
#[derive(Clone, Copy, Default)]
pub(super) struct SizeBound {
    /// How many elements or entries it has.
    pub(super) items: u64,
    /// What its largest element weighs.
    pub(super) each: u64,
    /// What it weighs: values and bytes in it.
    pub(super) weight: u64,
}

impl SizeBound {
    pub(super) fn scalar(weight: u64) -> Self {
        Self { items: 0, each: 0, weight }
    }

    /// Of anything that is no heavier.
    pub(super) fn within(weight: u64) -> Self {
        Self { items: weight, each: weight, weight }
    }

    pub(super) fn of(value: &Value) -> Self {
        let elements = |weights: &mut dyn Iterator<Item = u64>, items: usize| {
            let (each, sum) = weights.fold((0, 1), |(each, sum): (u64, u64), one| (each.max(one), add(sum, one)));
            Self { items: number(items), each, weight: sum }
        };
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::scalar(1),
            Value::String(text) => Self::scalar(add(1, number(text.len()))),
            Value::Array(list) => elements(&mut list.iter().map(|one| Self::of(one).weight), list.len()),
            Value::Object(map) => {
                let entry = |(key, one): (&String, &Value)| add(number(key.len()), Self::of(one).weight);
                elements(&mut map.iter().map(entry), map.len())
            }
        }
    }

    /// The larger of two in every respect.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            items: self.items.max(other.items),
            each: self.each.max(other.each),
            weight: self.weight.max(other.weight),
        }
    }
}

impl<'a> Extent<'a> {
    pub(super) fn bound(self) -> SizeBound {
        match self {
            Extent::Known(value) => SizeBound::of(value),
            Extent::Key(text) => SizeBound::scalar(add(1, number(text.len()))),
            Extent::Count(_) | Extent::Truth(_) => SizeBound::scalar(1),
            Extent::Bound(bound) => bound,
        }
    }

    pub(super) fn member(self, name: &str) -> Self {
        match self {
            Extent::Known(value) => value.get(name).map_or(Extent::Bound(SizeBound::default()), Extent::Known),
            other => Extent::Bound(SizeBound::within(other.bound().each)),
        }
    }

    /// Whether it has a member; of null that is not said.
    pub(super) fn has(self, name: &str) -> Self {
        match self {
            Extent::Known(Value::Object(map)) if map.get(name) != Some(&Value::Null) => {
                Extent::Truth(map.contains_key(name))
            }
            _ => Extent::Bound(SizeBound::scalar(1)),
        }
    }

    /// Its elements, or its keys.
    pub(super) fn elements(self) -> Option<Box<dyn Iterator<Item = Self> + 'a>> {
        match self {
            Extent::Known(Value::Array(list)) => Some(Box::new(list.iter().map(Extent::Known))),
            Extent::Known(Value::Object(map)) => Some(Box::new(map.keys().map(|key| Extent::Key(key)))),
            _ => None,
        }
    }

    /// Whether it is null, where that is known.
    fn is_null(self) -> Option<bool> {
        match self {
            Extent::Known(value) => Some(value.is_null()),
            Extent::Key(_) | Extent::Count(_) | Extent::Truth(_) => Some(false),
            Extent::Bound(_) => None,
        }
    }
}

/// What a literal says of itself.
pub(super) fn literal<'a>(literal: &LiteralValue) -> Extent<'a> {
    match literal {
        LiteralValue::Null => Extent::Known(&Value::Null),
        LiteralValue::Boolean(truth) => Extent::Truth(*truth.inner()),
        LiteralValue::Int(number) => {
            u64::try_from(*number.inner()).map_or(Extent::Bound(SizeBound::scalar(1)), Extent::Count)
        }
        LiteralValue::String(text) => Extent::Bound(SizeBound::scalar(add(1, number(text.inner().len())))),
        LiteralValue::Bytes(bytes) => Extent::Bound(SizeBound::scalar(add(1, number(bytes.inner().len())))),
        LiteralValue::Double(_) | LiteralValue::UInt(_) => Extent::Bound(SizeBound::scalar(1)),
    }
}

/// The value of a function of arguments that are known, where it costs nothing to tell.
pub(super) fn known<'a>(name: &str, args: &[Extent<'a>]) -> Option<Extent<'a>> {
    match (name, args) {
        (operators::LOGICAL_NOT, [Extent::Truth(truth)]) => Some(Extent::Truth(!truth)),
        ("size", [Extent::Known(Value::Array(list))]) => Some(Extent::Count(number(list.len()))),
        ("size", [Extent::Known(Value::Object(map))]) => Some(Extent::Count(number(map.len()))),
        (operators::MULTIPLY, [Extent::Count(left), Extent::Count(right)]) => {
            Some(Extent::Count(left.saturating_mul(*right)))
        }
        (_, [Extent::Count(left), Extent::Count(right)]) => Some(Extent::Truth(match name {
            operators::EQUALS => left == right,
            operators::NOT_EQUALS => left != right,
            operators::LESS => left < right,
            operators::LESS_EQUALS => left <= right,
            operators::GREATER => left > right,
            operators::GREATER_EQUALS => left >= right,
            _ => return None,
        })),
        (
            operators::EQUALS | operators::NOT_EQUALS,
            [one, Extent::Known(Value::Null)] | [Extent::Known(Value::Null), one],
        ) => Some(Extent::Truth(one.is_null()? == (name == operators::EQUALS))),
        _ => None,
    }
}

pub(super) fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

pub(super) fn add(left: u64, right: u64) -> u64 {
    left.saturating_add(right)
}
