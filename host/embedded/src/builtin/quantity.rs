//! Quantities as Kubernetes writes them: `0.5` is `500m`, `2048Mi` is `2Gi`, `10000` is `10k`.

/// The same quantity in its usual form. None for what is no quantity, or is beyond all that is usual.
pub(super) fn canonical(text: &str) -> Option<String> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("-", rest) => (-1, rest),
        ("+", rest) => (1, rest),
        _ => (1, text),
    };
    let end = digits.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(digits.len());
    let (number, suffix) = digits.split_at_checked(end)?;
    let scale = QuantityUnit::parse(suffix)?;
    let nanos = scale.nanos(number)?.checked_mul(sign)?;
    if nanos == 0 {
        return Some("0".to_owned());
    }
    Some(match scale {
        // Below 1024 the units of bytes would only round.
        QuantityUnit::Binary(_) if nanos.abs() >= 1024 * ONE => binary(nanos),
        QuantityUnit::Exponent(_) => {
            decimal(nanos, |power| if power == 0 { String::new() } else { format!("e{power}") })
        }
        QuantityUnit::Binary(_) | QuantityUnit::Decimal(_) => decimal(nanos, |power| {
            DECIMAL.iter().find(|(_, of)| *of == power).map(|(suffix, _)| (*suffix).to_owned()).unwrap_or_default()
        }),
    })
}

/// What stands behind the number.
#[derive(Clone, Copy)]
enum QuantityUnit {
    /// A power of ten.
    Decimal(i32),
    /// A power of ten that is written as one.
    Exponent(i32),
    /// A power of 1024.
    Binary(u32),
}

/// Quantities are counted in billionths.
const ONE: i128 = 1_000_000_000;
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl QuantityUnit {
    fn parse(suffix: &str) -> Option<Self> {
        if let Some((_, power)) = DECIMAL.iter().find(|(of, _)| *of == suffix) {
            return Some(Self::Decimal(*power));
        }
        if let Some(place) = BINARY.iter().position(|of| *of == suffix) {
            return Some(Self::Binary(u32::try_from(place).ok()? + 1));
        }
        let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
        (power.abs() <= 18).then_some(Self::Exponent(power))
    }

    /// The number in billionths, rounded up.
    fn nanos(self, number: &str) -> Option<i128> {
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && part.is_empty()) || whole.len() + part.len() > 18 {
            return None;
        }
        let digits: i128 = format!("{whole}{part}").parse().ok()?;
        let part = i32::try_from(part.len()).ok()?;
        match self {
            Self::Decimal(power) | Self::Exponent(power) => {
                let power = power + 9 - part;
                let factor = 10_i128.checked_pow(power.unsigned_abs())?;
                if power >= 0 { digits.checked_mul(factor) } else { Some(up(digits, factor)) }
            }
            Self::Binary(power) => {
                let value = digits.checked_mul(1024_i128.checked_pow(power)?)?.checked_mul(ONE)?;
                Some(up(value, 10_i128.checked_pow(part.unsigned_abs())?))
            }
        }
    }
}

/// A number that is not negative, divided and rounded up.
fn up(number: i128, by: i128) -> i128 {
    number / by + i128::from(number % by != 0)
}

fn binary(nanos: i128) -> String {
    let mut number = up(nanos.abs(), ONE);
    let mut unit = "";
    for larger in BINARY {
        if number % 1024 != 0 {
            break;
        }
        (number, unit) = (number / 1024, larger);
    }
    format!("{}{number}{unit}", if nanos < 0 { "-" } else { "" })
}

fn decimal(nanos: i128, unit: impl Fn(i32) -> String) -> String {
    let (mut number, mut power) = (nanos, -9);
    while number % 1000 == 0 && power < 18 {
        (number, power) = (number / 1000, power + 3);
    }
    format!("{number}{}", unit(power))
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn a_quantity_is_written_in_the_largest_unit_that_keeps_it_whole() {
        for (written, usual) in [
            ("0.5", "500m"),
            ("10000", "10k"),
            ("1500m", "1500m"),
            ("1000m", "1"),
            ("2048Mi", "2Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1e3", "1e3"),
            ("12e4", "120e3"),
            ("-1000", "-1k"),
            ("0Gi", "0"),
            ("123456789", "123456789"),
            ("0.0000000001", "1n"),
        ] {
            assert_eq!(canonical(written).as_deref(), Some(usual), "{written}");
            assert_eq!(canonical(usual).as_deref(), Some(usual), "{usual}");
        }
        for not in ["", "-", "x", "1x", ".", "1.2.3", "1e99", "99999999999999999999", "\u{e9}"] {
            assert_eq!(canonical(not), None, "{not}");
        }
    }
}
