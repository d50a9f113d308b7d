//! Error codes of the field, and what is told to a user when something failed.

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};

/// The error codes of `docs/wire.md` §3.3. An open set on the wire: unknown codes are kept as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Code {
    /// `ERR_UNAUTHORIZED`
    Unauthorized,
    /// `ERR_CLEANUP`
    Cleanup,
    /// `ERR_CONFIGURATION_PROBLEM`
    ConfigurationProblem,
    /// `ERR_INTERNAL_PROBLEM`
    InternalProblem,
    /// `ERR_TIMEOUT`
    Timeout,
    /// `ERR_CYCLIC_DEPENDENCIES`
    CyclicDependencies,
    /// `ERR_WEBHOOK`
    Webhook,
    /// `ERR_UNFINISHED`
    Unfinished,
    /// `ERR_FOR_INFO_ONLY`
    ForInfoOnly,
    /// `ERR_NO_RETRY`
    NoRetry,
    /// `ERR_FORBIDDEN`: a capability that was not granted.
    Forbidden,
    /// `ERR_LIMIT_EXCEEDED`: a budget of the sandbox was met.
    LimitExceeded,
    /// `ERR_POLICY_VIOLATION`: a policy of the namespace refuses it.
    PolicyViolation,
    /// Any other code.
    Other(String),
}

const CODES: [(Code, &str); 13] = [
    (Code::Unauthorized, "ERR_UNAUTHORIZED"),
    (Code::Cleanup, "ERR_CLEANUP"),
    (Code::ConfigurationProblem, "ERR_CONFIGURATION_PROBLEM"),
    (Code::InternalProblem, "ERR_INTERNAL_PROBLEM"),
    (Code::Timeout, "ERR_TIMEOUT"),
    (Code::CyclicDependencies, "ERR_CYCLIC_DEPENDENCIES"),
    (Code::Webhook, "ERR_WEBHOOK"),
    (Code::Unfinished, "ERR_UNFINISHED"),
    (Code::ForInfoOnly, "ERR_FOR_INFO_ONLY"),
    (Code::NoRetry, "ERR_NO_RETRY"),
    (Code::Forbidden, "ERR_FORBIDDEN"),
    (Code::LimitExceeded, "ERR_LIMIT_EXCEEDED"),
    (Code::PolicyViolation, "ERR_POLICY_VIOLATION"),
];

impl Code {
    /// Whether it says that a deploy item cannot recover (`docs/wire.md` §3.3).
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            Code::Unauthorized
                | Code::ConfigurationProblem
                | Code::InternalProblem
                | Code::Timeout
                | Code::CyclicDependencies
        )
    }
}

impl From<String> for Code {
    fn from(text: String) -> Self {
        match CODES.iter().find(|(_, name)| *name == text) {
            Some((code, _)) => code.clone(),
            None => Code::Other(text),
        }
    }
}

impl From<&str> for Code {
    fn from(text: &str) -> Self {
        Code::from(text.to_owned())
    }
}

impl From<Code> for String {
    fn from(code: Code) -> Self {
        code.to_string()
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Code::Other(text) = self {
            return f.write_str(text);
        }
        match CODES.iter().find(|(code, _)| code == self) {
            Some((_, name)) => f.write_str(name),
            None => f.write_str("ERR_INTERNAL_PROBLEM"),
        }
    }
}

/// What a component says went wrong (`problem` of `wit/deployer/0.1.0/types.wit`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// An error code of the field.
    pub code: Code,
    /// One sentence.
    pub message: String,
    /// Where in the configuration, as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            Some(at) => write!(f, "{} (at {at})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// Why a call into a component, or a host call out of one, ends without an answer (`fault` of the contract).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Only another configuration helps: the item fails.
    #[error("{0}")]
    Invalid(Problem),
    /// May pass by itself: the host calls again, with backoff, until the item's deadline.
    #[error("{0}")]
    Later(Problem),
    /// The host refused a capability: the item fails and names the missing grant.
    #[error("{0}")]
    Denied(Problem),
}

impl Fault {
    /// A fault that only another configuration mends.
    pub fn invalid(code: Code, message: impl Into<String>) -> Self {
        Fault::Invalid(Problem { code, message: message.into(), at: None })
    }

    /// A fault that may pass by itself.
    pub fn later(code: Code, message: impl Into<String>) -> Self {
        Fault::Later(Problem { code, message: message.into(), at: None })
    }

    /// A capability that was not granted.
    pub fn denied(message: impl Into<String>) -> Self {
        Fault::Denied(Problem { code: Code::Forbidden, message: message.into(), at: None })
    }

    /// The code of the failure that it is. What is tried again has none that says that nothing helps: the original ends a job
    /// by such a code, and goes on where an error has none (C-123).
    pub fn code(&self) -> Option<Code> {
        let code = &self.problem().code;
        let is_said = !matches!(self, Fault::Later(_)) || !code.is_final();
        is_said.then(|| code.clone())
    }

    /// What is told, whatever the sort of fault.
    pub fn problem(&self) -> &Problem {
        match self {
            Fault::Invalid(problem) | Fault::Later(problem) | Fault::Denied(problem) => problem,
        }
    }
}

/// A failure as it is written to `status.lastError`: operation, reason, message, codes (`docs/wire.md` §3.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The operation that failed, such as `ReadImports`.
    pub operation: String,
    /// A CamelCase word, such as `ImportNotFound`.
    pub reason: String,
    /// One sentence: what, where, why, how to fix.
    pub message: String,
    /// Sorted; may be empty.
    #[serde(default)]
    pub codes: BTreeSet<Code>,
}

/// The longest message of a failure, in bytes: what a status and its parents can carry many times over.
pub const LONGEST_MESSAGE: usize = 8 * 1024;

/// The longest message of a failure, in bytes, where the same status has it whole elsewhere (C-144).
pub const LONGEST_REPEATED: usize = 1 << 10;

/// The most error codes of a status that are none of the field's (C-144).
const MOST_OTHER_CODES: usize = 16;

/// The most bytes of one of them.
const LONGEST_CODE: usize = 64;

/// The error codes that a status shows: those of the field, and some of what others have made up.
pub fn shown_codes(codes: &BTreeSet<Code>) -> Vec<Code> {
    let mut others = 0;
    let shown = codes.iter().filter(|code| match code {
        Code::Other(text) if text.len() > LONGEST_CODE => false,
        Code::Other(_) => {
            others += 1;
            others <= MOST_OTHER_CODES
        }
        _ => true,
    });
    shown.cloned().collect()
}

/// The least of each cause that a joined message keeps, in bytes.
const LEAST_OF_A_CAUSE: usize = 160;

/// The room for what is said of a part that is left out, in bytes.
const OMISSION: usize = 40;

/// Whether a character moves the cursor, ends a line or turns the text around, where it is shown.
pub fn moves_text(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text in which whatever moves text is escaped, in a form that JSON reads as well, but for one character that may.
pub fn escaped(text: &str, may: char) -> String {
    let mut written = String::with_capacity(text.len());
    for c in text.chars() {
        if c == may || !moves_text(c) {
            written.push(c);
        } else if c == '\n' {
            written.push_str("\\n");
        } else {
            written.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
    }
    written
}

/// Words of a stranger, as they may stand in a message: within a limit, and nothing in them moves the cursor or turns the
/// text around.
pub fn cleaned(words: &str, limit: usize) -> String {
    let (kept, _) = words.split_at(words.floor_char_boundary(limit.min(words.len())));
    let clean: String = kept
        .chars()
        .map(|c| {
            if c == '\n' || c == '\t' {
                ' '
            } else if moves_text(c) {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect();
    if kept.len() == words.len() { clean } else { format!("{clean} [… {} more bytes]", words.len() - kept.len()) }
}

/// A message within its limit: what is beyond it is left out, and said to be. How many causes it counts stays.
pub fn cut(message: String, limit: usize) -> String {
    if message.len() <= limit {
        return message;
    }
    let (told, more) = counted(&message);
    let (text, count) = message.split_at(if more == 0 { message.len() } else { told });
    let (kept, _) = text.split_at(text.floor_char_boundary(limit.saturating_sub(count.len())));
    format!("{kept} [… {} more bytes]{count}", text.len() - kept.len())
}

/// Up to which byte a message tells causes, and how many more it counts.
fn counted(message: &str) -> (usize, usize) {
    let count = |(told, rest): (&str, &str)| Some((told.len(), rest.strip_suffix(" more")?.parse().ok()?));
    message.rsplit_once("; and ").and_then(count).unwrap_or((message.len(), 0))
}

/// One more cause behind those that a message tells, as far as there is room for it within [`LONGEST_MESSAGE`]; those that have
/// none are counted.
pub fn add_cause(message: &mut String, cause: &str) {
    let (told, more) = counted(message);
    if more == 0 && message.len() + cause.len() + OMISSION <= LONGEST_MESSAGE {
        message.push_str("; ");
        message.push_str(cause);
        return;
    }
    let more = more + 1 + counted(cause).1;
    message.truncate(told);
    message.push_str(&format!("; and {more} more"));
}

/// The most letters of a message in a column of `kubectl get`.
pub const LONGEST_BRIEF: usize = 120;

/// The begin of a message, where there is room for one line of a table alone (C-65).
pub fn brief(message: &str) -> String {
    if message.chars().nth(LONGEST_BRIEF).is_none() {
        return message.to_owned();
    }
    message.chars().take(LONGEST_BRIEF - 1).chain(['…']).collect()
}

/// Several causes as one message within [`LONGEST_MESSAGE`]. Each keeps its beginning, as long as there is room for them
/// all; how many have no room at all is said.
pub fn joined(causes: &[String]) -> String {
    let share = (LONGEST_MESSAGE / causes.len().max(1)).saturating_sub(OMISSION).max(LEAST_OF_A_CAUSE);
    let whole: usize = causes.iter().map(|cause| cause.len() + 2).sum();
    let mut message = String::new();
    for (index, cause) in causes.iter().enumerate() {
        let cause = if whole > LONGEST_MESSAGE { cut(cause.clone(), share) } else { cause.clone() };
        if index > 0 && message.len() + cause.len() > LONGEST_MESSAGE {
            message.push_str(&format!("; and {} more", causes.len() - index));
            break;
        }
        if index > 0 {
            message.push_str("; ");
        }
        message.push_str(&cause);
    }
    message
}

impl Failure {
    /// A failure without codes.
    pub fn new(operation: impl Into<String>, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { operation: operation.into(), reason: reason.into(), message: message.into(), codes: BTreeSet::new() }
    }

    /// The same failure with one code more.
    pub fn with_code(mut self, code: Code) -> Self {
        self.codes.insert(code);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_stranger_move_nothing_and_have_an_end() {
        assert_eq!(cleaned("a\nb\tc", 10), "a b c");
        assert_eq!(cleaned("a\u{1b}[2Jb\u{202e}c\u{0}", 20), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}");
        assert_eq!(cleaned("äää", 3), "ä [… 4 more bytes]");
    }

    #[test]
    fn codes_keep_their_wire_form_and_unknown_ones_survive() {
        let texts: Vec<String> =
            CODES.iter().map(|(_, name)| (*name).to_owned()).chain(["ERR_MINE".to_owned()]).collect();
        let round: Vec<String> = texts.iter().map(|text| String::from(Code::from(text.clone()))).collect();
        assert_eq!(round, texts);
        assert_eq!(Code::from("ERR_MINE"), Code::Other("ERR_MINE".to_owned()));
    }

    #[test]
    fn c_123_what_is_tried_again_has_no_code_that_says_that_nothing_helps() {
        for (code, _) in CODES {
            let later = Fault::later(code.clone(), "m").code();
            let invalid = Fault::invalid(code.clone(), "m").code();
            let is_kept = !matches!(
                code.to_string().as_str(),
                "ERR_UNAUTHORIZED"
                    | "ERR_CONFIGURATION_PROBLEM"
                    | "ERR_INTERNAL_PROBLEM"
                    | "ERR_TIMEOUT"
                    | "ERR_CYCLIC_DEPENDENCIES"
            );
            assert_eq!((later, invalid), (is_kept.then(|| code.clone()), Some(code)));
        }
    }

    #[test]
    fn causes_are_joined_within_the_limit_and_what_is_left_out_is_counted() {
        let all = |causes: &[&str]| joined(&causes.iter().map(|cause| (*cause).to_owned()).collect::<Vec<_>>());
        assert_eq!(all(&[]), "");
        assert_eq!(all(&["one"]), "one");
        assert_eq!(all(&["one", "two"]), "one; two");
        // Of two long ones both are told.
        let share = LONGEST_MESSAGE / 2 - OMISSION;
        let part = |of: &str| format!("{} [… {} more bytes]", of.repeat(share), LONGEST_MESSAGE - share);
        let both = all(&[&"a".repeat(LONGEST_MESSAGE), &"b".repeat(LONGEST_MESSAGE)]);
        assert_eq!(both, format!("{}; {}", part("a"), part("b")));
        // Of very many the first ones, and how many more there are.
        let many: Vec<String> = (0..18_000).map(|index| format!("ConfigMap {index} was refused")).collect();
        let message = joined(&many);
        let shown = message.matches("was refused").count();
        assert!(message.len() <= LONGEST_MESSAGE + 32, "{}", message.len());
        assert!(shown > 100, "{shown}");
        assert!(message.ends_with(&format!("; and {} more", many.len() - shown)), "{message}");
    }

    #[test]
    fn c_144_limits_status_codes_of_the_field_are_shown_and_some_of_those_of_others() {
        let other = |number: usize| Code::Other(format!("{number:02}{}", "X".repeat(LONGEST_CODE - 2)));
        let codes: BTreeSet<Code> = (0..100)
            .map(other)
            .chain([Code::Timeout, Code::PolicyViolation, Code::Other("0".repeat(LONGEST_CODE + 1))])
            .collect();
        let mut expected = vec![Code::Timeout, Code::PolicyViolation];
        expected.extend((0..MOST_OTHER_CODES).map(other));
        assert_eq!(shown_codes(&codes), expected);
    }

    #[test]
    fn c_98_causes_are_added_as_long_as_there_is_room_and_counted_from_then_on() {
        let of = |causes: &[String]| {
            let (first, others) = causes.split_first().unwrap();
            others.iter().fold(first.clone(), |mut message, cause| {
                add_cause(&mut message, cause);
                message
            })
        };
        let few: Vec<String> = (0..3).map(|index| format!("{index} failed")).collect();
        assert_eq!(of(&few), "0 failed; 1 failed; 2 failed");
        let many: Vec<String> = (0..300).map(|index| format!("{index:03} failed{}", "!".repeat(90))).collect();
        let message = of(&many);
        let shown = message.matches("failed").count();
        assert!(shown > 50 && message.len() <= LONGEST_MESSAGE, "{message}");
        assert!(message.ends_with(&format!("!; and {} more", 300 - shown)), "{message}");
        // What a cause counts itself is counted too, and nothing is added behind a count.
        let mut both = message.clone();
        add_cause(&mut both, &message);
        add_cause(&mut both, "short");
        assert!(both.ends_with(&format!("!; and {} more", 300 - shown + 1 + 300 - shown + 1)), "{both}");
    }

    #[test]
    fn a_message_beyond_its_limit_says_what_is_left_out() {
        assert_eq!(cut("12345".to_owned(), 5), "12345");
        assert_eq!(cut("123456789".to_owned(), 5), "12345 [… 4 more bytes]");
        assert_eq!(cut("aäää".to_owned(), 4), "aä [… 4 more bytes]");
        assert_eq!(cut("123456789; and 12 more".to_owned(), 18), "12345 [… 4 more bytes]; and 12 more");
        assert_eq!(cut("123456789; and no more".to_owned(), 5), "12345 [… 17 more bytes]");
    }
}
