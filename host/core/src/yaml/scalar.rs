//! What a scalar means by the rules of YAML 1.1 as Go's `yaml.v2` applies them.

use data_encoding::BASE64;
use serde_json::{Number, Value};

use super::YamlFault;

/// A scalar, resolved.
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(Number),
    Float(f64),
    Text(String),
}

const TRUE: [&str; 11] = ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"];
const FALSE: [&str; 11] = ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"];
const NULL: [&str; 5] = ["", "~", "null", "Null", "NULL"];

/// Resolves a scalar by its style and tag.
pub(super) fn resolve(text: &str, plain: bool, tag: Option<&str>) -> Result<Scalar, YamlFault> {
    let implicit = || if plain { implied(text) } else { Scalar::Text(text.to_owned()) };
    let misfit = |tag: &str| YamlFault::Tag(tag.to_owned());
    match tag {
        None => Ok(implicit()),
        Some(tag @ "!!int") => match implied(text) {
            int @ Scalar::Int(_) => Ok(int),
            Scalar::Null | Scalar::Bool(_) | Scalar::Float(_) | Scalar::Text(_) => Err(misfit(tag)),
        },
        Some(tag @ "!!float") => match implied(text) {
            float @ Scalar::Float(_) => Ok(float),
            Scalar::Int(number) => Ok(Scalar::Float(number.as_f64().ok_or_else(|| misfit(tag))?)),
            Scalar::Null | Scalar::Bool(_) | Scalar::Text(_) => Err(misfit(tag)),
        },
        Some(tag @ "!!bool") => match implied(text) {
            bool @ Scalar::Bool(_) => Ok(bool),
            Scalar::Null | Scalar::Int(_) | Scalar::Float(_) | Scalar::Text(_) => Err(misfit(tag)),
        },
        Some("!!null") => Ok(Scalar::Null),
        Some(tag @ "!!binary") => {
            let encoded: String = text.split_whitespace().collect();
            let bytes = BASE64.decode(encoded.as_bytes()).map_err(|_| misfit(tag))?;
            Ok(Scalar::Text(String::from_utf8_lossy(&bytes).into_owned()))
        }
        Some(_) => Ok(Scalar::Text(text.to_owned())),
    }
}

/// What a plain scalar without a tag means.
fn implied(text: &str) -> Scalar {
    if NULL.contains(&text) {
        return Scalar::Null;
    }
    if TRUE.contains(&text) {
        return Scalar::Bool(true);
    }
    if FALSE.contains(&text) {
        return Scalar::Bool(false);
    }
    match text {
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Scalar::Text(text.to_owned());
    }
    let digits = text.replace('_', "");
    if let Some(number) = integer(&digits) {
        return Scalar::Int(number);
    }
    match float(&digits) {
        Some(float) => Scalar::Float(float),
        None => Scalar::Text(text.to_owned()),
    }
}

/// Go's integers: decimal, `0x`, `0b`, `0o` and a leading zero for octal, each with a sign.
fn integer(digits: &str) -> Option<Number> {
    let (negative, magnitude) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits.strip_prefix('+').unwrap_or(digits)),
    };
    let lower = magnitude.to_ascii_lowercase();
    let (radix, body) = if let Some(body) = lower.strip_prefix("0x") {
        (16, body)
    } else if let Some(body) = lower.strip_prefix("0b") {
        (2, body)
    } else if let Some(body) = lower.strip_prefix("0o") {
        (8, body)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, lower.get(1..)?)
    } else {
        (10, lower.as_str())
    };
    if !body.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let value = u64::from_str_radix(body, radix).ok()?;
    if negative {
        return 0_i64.checked_sub_unsigned(value).map(Number::from);
    }
    // Go reads a sign only in front of what fits a signed number.
    if digits.starts_with('+') && i64::try_from(value).is_err() {
        return None;
    }
    Some(Number::from(value))
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn float(digits: &str) -> Option<f64> {
    let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let decimal = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && decimal(exponent)
    });
    if !(has_digits && decimal(whole) && decimal(fraction) && exponent_fits) {
        return None;
    }
    digits.parse().ok()
}

/// Beyond this a 64-bit float does not hold every whole number.
const WHOLE: f64 = 9_007_199_254_740_992.0;

impl Scalar {
    /// The scalar that a value is; lists and objects are none.
    pub(super) fn of(value: Value) -> Result<Self, YamlFault> {
        match value {
            Value::Null => Ok(Scalar::Null),
            Value::Bool(bool) => Ok(Scalar::Bool(bool)),
            Value::Number(number) => Ok(Scalar::Int(number)),
            Value::String(text) => Ok(Scalar::Text(text)),
            Value::Array(_) | Value::Object(_) => Err(YamlFault::KeyIsNoScalar),
        }
    }

    /// As JSON. A float without a fraction becomes a whole number, as Go writes it, so that `1e3` can stand where the
    /// API server wants an integer.
    pub(super) fn into_value(self) -> Result<Value, YamlFault> {
        match self {
            Scalar::Null => Ok(Value::Null),
            Scalar::Bool(bool) => Ok(Value::Bool(bool)),
            Scalar::Int(number) => Ok(Value::Number(number)),
            Scalar::Text(text) => Ok(Value::String(text)),
            Scalar::Float(float) if float.fract() == 0.0 && float.abs() < WHOLE => {
                #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
                let whole = float as i64;
                Ok(Value::Number(Number::from(whole)))
            }
            Scalar::Float(float) => Number::from_f64(float).map(Value::Number).ok_or(YamlFault::NotANumber),
        }
    }

    /// As a key of a JSON object.
    pub(super) fn into_key(self) -> Result<String, YamlFault> {
        match self {
            Scalar::Null => Err(YamlFault::KeyIsNull),
            Scalar::Bool(bool) => Ok(bool.to_string()),
            Scalar::Text(text) => Ok(text),
            number @ (Scalar::Int(_) | Scalar::Float(_)) => Ok(number.into_value()?.to_string()),
        }
    }
}
