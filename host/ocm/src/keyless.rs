//! Signers without a key of their own: an identity to which an authority of Sigstore gave a certificate for some minutes, and a
//! log that says when it signed (C-48). What is trusted is written down; what holds is found out in the room `registry`.

use std::fmt;

use orangery_core::pattern::matches;
use regex::{Regex, RegexBuilder};

/// The bytes of memory of a compiled expression.
const MOST_OF_AN_EXPRESSION: usize = 1 << 20;

/// The bytes of an expression.
const LONGEST_EXPRESSION: usize = 512;

/// Its levels.
const DEEPEST_EXPRESSION: u32 = 64;

/// The signer that is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeylessSigner {
    /// The OpenID Connect issuer that knows the identity, such as `https://token.actions.githubusercontent.com`.
    pub issuer: String,
    /// The identity, as the certificate has it: a URI or an email address.
    pub identity: SignerIdentity,
    /// The trusted root (`application/vnd.dev.sigstore.trustedroot+json`): certificate authorities and keys of logs.
    pub trusted_root: String,
}

/// One identity, or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignerIdentity {
    /// In which `*` stands for any letters; exactly this one where it has none.
    Pattern(String),
    /// A regular expression of the crate `regex`, whose time is linear; the whole identity has to match.
    Expression(String),
}

impl SignerIdentity {
    /// Whether it is this one. An expression that is none matches nothing.
    pub fn matches(&self, identity: &str) -> bool {
        match self {
            Self::Pattern(pattern) => matches(pattern, identity),
            Self::Expression(expression) => whole(expression).is_ok_and(|whole| whole.is_match(identity)),
        }
    }

    /// Why nothing can match it: the end of a sentence that begins with its place.
    pub fn fault(&self) -> Option<String> {
        match self {
            Self::Pattern(_) => None,
            Self::Expression(expression) => whole(expression).err(),
        }
    }
}

impl fmt::Display for SignerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(pattern) => f.write_str(pattern),
            Self::Expression(expression) => write!(f, "/{expression}/"),
        }
    }
}

/// The expression by itself has to be one as well: `a)|(b` is none, though it would be between parentheses.
fn whole(expression: &str) -> Result<Regex, String> {
    if expression.len() > LONGEST_EXPRESSION {
        return Err(format!("has {} bytes, {LONGEST_EXPRESSION} are allowed; write less", expression.len()));
    }
    let compile = |text: &str| {
        let mut builder = RegexBuilder::new(text);
        let builder = builder.size_limit(MOST_OF_AN_EXPRESSION).dfa_size_limit(MOST_OF_AN_EXPRESSION);
        builder.nest_limit(DEEPEST_EXPRESSION).build()
    };
    let unusable = |error: regex::Error| match error {
        regex::Error::CompiledTooBig(most) => format!("takes more than {most} bytes when it is compiled; write less"),
        other => {
            let why = other.to_string();
            format!("is no regular expression: {}", why.lines().last().unwrap_or_default().trim())
        }
    };
    compile(expression).map_err(unusable)?;
    compile(&format!(r"\A(?:{expression})\z")).map_err(unusable)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKFLOW: &str = "https://github.com/acme/app/.github/workflows/release.yml@refs/tags/v1";

    fn expression(text: &str) -> SignerIdentity {
        SignerIdentity::Expression(text.to_owned())
    }

    #[test]
    fn c_48_the_whole_identity_has_to_match() {
        let cases = [
            (SignerIdentity::Pattern(WORKFLOW.to_owned()), true),
            (SignerIdentity::Pattern("https://github.com/acme/*@refs/tags/*".to_owned()), true),
            (SignerIdentity::Pattern("https://github.com/acme/app".to_owned()), false),
            (expression(r"https://github\.com/acme/[a-z]+/\.github/workflows/release\.yml@refs/tags/v[0-9]+"), true),
            (expression(r"https://github\.com/acme/app"), false),
            (expression(r"github\.com/acme/.*"), false),
            (expression(r"x|https://github.*"), true),
            (expression("https://github.*|"), true),
            (expression("https://(github"), false),
            (expression("x)|(.*"), false),
            (expression("(?m)^https.*$"), true),
        ];
        for (identity, expected) in cases {
            assert_eq!(identity.matches(WORKFLOW), expected, "{identity}");
        }
        assert!(!expression("(?m)^a$").matches("b\na\nb"), "a line is not the whole");
    }

    #[test]
    fn c_48_an_expression_that_is_none_says_why() {
        let told = |text: &str| expression(text).fault();
        assert_eq!(SignerIdentity::Pattern("(".to_owned()).fault(), None);
        assert_eq!(told("a.*"), None);
        assert_eq!(told("(a"), Some("is no regular expression: error: unclosed group".to_owned()));
        assert_eq!(told("x)|(.*"), Some("is no regular expression: error: unopened group".to_owned()));
    }

    #[test]
    fn limits_keyless_an_expression_that_grows_is_refused() {
        let most = format!("takes more than {MOST_OF_AN_EXPRESSION} bytes when it is compiled; write less");
        assert_eq!(expression("((a{100}){100}){100}").fault(), Some(most));
    }

    #[test]
    fn c_135_limits_keyless_an_expression_has_a_length_and_levels() {
        let of = |length: usize| expression(&"a".repeat(length));
        assert_eq!(of(LONGEST_EXPRESSION).fault(), None);
        assert_eq!(
            of(LONGEST_EXPRESSION + 1).fault(),
            Some("has 513 bytes, 512 are allowed; write less".to_owned()),
            "and it matches nothing"
        );
        assert!(!of(LONGEST_EXPRESSION + 1).matches(&"a".repeat(LONGEST_EXPRESSION + 1)));
        let deep = |levels: usize| expression(&format!("{}a{}", "(".repeat(levels), ")".repeat(levels)));
        assert_eq!(deep(60).fault(), None);
        let why = deep(100).fault().unwrap();
        assert!(why.starts_with("is no regular expression: "), "{why}");
        // Its time is linear in the letters of the identity.
        assert!(!expression("(a+)+").matches(&format!("{}b", "a".repeat(100_000))));
    }
}
