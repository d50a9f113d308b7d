//! Regular expressions over names, as the original has them: they match anywhere in a name, and `*` matches all.

use regex::{Regex, RegexBuilder};

/// The longest expression, in bytes (C-371).
const LONGEST_EXPRESSION: usize = 1 << 10;
/// The most bytes that a compiled one takes (C-371).
const MOST_EXPRESSION_BYTES: usize = 1 << 20;

/// Which names an expression matches.
#[derive(Debug)]
pub(super) struct NameFilter(Regex);

impl NameFilter {
    /// Of the text of a field.
    ///
    /// # Errors
    /// It is no expression, or one beyond what is allowed: one sentence.
    pub(super) fn of(field: &str, expression: &str) -> Result<Self, String> {
        if expression.len() > LONGEST_EXPRESSION {
            return Err(format!(
                "{field} has {} bytes, {LONGEST_EXPRESSION} are allowed; shorten it",
                expression.len()
            ));
        }
        let expression = if expression == "*" { ".*" } else { expression };
        let built = RegexBuilder::new(expression)
            .size_limit(MOST_EXPRESSION_BYTES)
            .dfa_size_limit(MOST_EXPRESSION_BYTES)
            .build();
        built.map(Self).map_err(|error| {
            let what = match error {
                regex::Error::CompiledTooBig(_) => "takes more memory than is allowed; make it smaller",
                _ => "is no regular expression in the syntax of RE2; correct it",
            };
            format!("{field} {expression:?} {what}")
        })
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_371_an_expression_matches_anywhere_and_a_star_matches_all() {
        let names = ["a.kubeconfig", "kubeconfig.b", "c"];
        let of = |expression: &str| {
            let filter = NameFilter::of("spec.secretNameExpression", expression).unwrap();
            names.into_iter().filter(|name| filter.matches(name)).collect::<Vec<_>>()
        };
        assert_eq!(of(r"\.kubeconfig$"), ["a.kubeconfig"]);
        assert_eq!(of("kubeconfig"), ["a.kubeconfig", "kubeconfig.b"]);
        assert_eq!(of("*"), names);
    }

    #[test]
    fn c_371_limits_target_sync_an_expression_has_a_length_and_a_size() {
        let of = |expression: &str| NameFilter::of("f", expression).map(drop);
        assert_eq!(of(&"a".repeat(LONGEST_EXPRESSION)), Ok(()));
        let long = format!("f has {} bytes, 1024 are allowed; shorten it", LONGEST_EXPRESSION + 1);
        assert_eq!(of(&"a".repeat(LONGEST_EXPRESSION + 1)), Err(long));
        let big = r"((a{100}){100}){100}";
        assert_eq!(of(big), Err(format!("f {big:?} takes more memory than is allowed; make it smaller")));
        assert_eq!(of("("), Err(r#"f "(" is no regular expression in the syntax of RE2; correct it"#.to_owned()));
    }
}
