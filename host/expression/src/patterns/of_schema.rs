//! Regular expressions of JSON schemas: written as JavaScript has them, and translated by the library before they are read.

use super::{PatternSize, ReadingBudget, STEPS_OF_A_BYTE, check_length};

/// What a class of white space is written out as, in bytes, and any other.
const SPACES: usize = 256;
const OTHER: usize = 32;

impl ReadingBudget {
    /// The same as [`ReadingBudget::read`] of one of a JSON schema; translating it is counted like reading it. Answers its places
    /// with its repetitions written out; `None` where it is no regular expression.
    pub fn read_of_schema(&mut self, pattern: &str) -> Result<Option<u64>, String> {
        check_length(pattern)?;
        // Each of these is written out by itself, and then the whole is read anew.
        let of = |names: [&str; 2]| names.map(|name| pattern.matches(name).count()).iter().sum::<usize>();
        let (spaces, others) =
            (of([r"\s", r"\S"]), of([r"\d", r"\D"]) + of([r"\w", r"\W"]) + pattern.matches(r"\c").count());
        let longest = pattern.len() + spaces * SPACES + others * OTHER;
        let parsed = u64::try_from((spaces + others + 1) * longest).unwrap_or(u64::MAX);
        self.pay(parsed.saturating_mul(STEPS_OF_A_BYTE))?;
        let Ok(translated) = jsonschema_regex::to_rust_regex(pattern) else { return Ok(None) };
        self.read_translated(&translated)?;
        Ok(PatternSize::of(&translated).map(|size| size.places))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_of_a_schema_is_measured_as_it_is_translated() {
        let places = |pattern: &str| ReadingBudget::default().read_of_schema(pattern);
        assert_eq!(places("^ab$"), places("^cd$"));
        assert!(places("^a{100}$").unwrap() > Some(100));
        assert_eq!(places("(a"), Ok(None));
        assert!(places(&"a".repeat(5_000)).is_err());
    }
}
