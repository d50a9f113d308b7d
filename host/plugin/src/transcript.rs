//! What a guest says: log lines and its standard streams, counted, escaped and cut.

use std::{borrow::Cow, collections::VecDeque, sync::Arc};

use orangery_core::error::moves_text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    budget::{Budget, BudgetLimit},
    error::CallStop,
};

/// How much of a guest's standard error is kept for the sentence about its end.
const TAIL: usize = 4 << 10;
/// The longest line that reaches the log.
const LINE: usize = 8 << 10;
/// How much of the last message is kept for the sentence about a limit.
const LAST: usize = 256;

/// The shortest word of a credential that is hidden: shorter ones stand in honest text as well.
const SECRET: usize = 12;
/// What stands for a hidden word.
const HIDDEN: &str = "[...]";

/// How grave a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

/// A standard stream of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Channel {
    Out,
    Err,
}

/// The lines of one call.
pub(crate) struct Transcript {
    plugin: Arc<str>,
    most_lines: u64,
    most_bytes: u64,
    lines: u64,
    bytes: u64,
    out: Vec<u8>,
    err: Vec<u8>,
    tail: VecDeque<u8>,
    /// The last message that was logged.
    last: String,
    /// Words of credentials that came through host calls, the longest first.
    secrets: Vec<String>,
}

impl Transcript {
    pub(crate) fn new(plugin: Arc<str>, budget: &Budget) -> Self {
        Self {
            plugin,
            most_lines: budget.log_lines,
            most_bytes: budget.log_bytes,
            lines: 0,
            bytes: 0,
            out: Vec::new(),
            err: Vec::new(),
            tail: VecDeque::new(),
            last: String::new(),
            secrets: Vec::new(),
        }
    }

    /// The words of this document are secret from now on: they are blotted out of all that the guest says.
    pub(crate) fn hide(&mut self, document: &Value) {
        match document {
            Value::String(text) => {
                let words = text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '{' | '}'));
                self.secrets.extend(words.filter(|word| word.len() >= SECRET).map(str::to_owned));
                self.secrets.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
                self.secrets.dedup();
            }
            Value::Array(items) => items.iter().for_each(|item| self.hide(item)),
            Value::Object(map) => map.values().for_each(|value| self.hide(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// A text of the guest without secrets and control characters, at most `most` bytes long; lines stay lines.
    pub(crate) fn message_of(&self, text: &str, most: usize) -> String {
        let clear = self.without_secrets(text).replace("\r\n", "\n");
        escaped_but(&clear, most, |character| matches!(character, '\n' | '\t'))
    }

    fn without_secrets<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.secrets.iter().fold(Cow::Borrowed(text), |text, secret| match text.contains(secret.as_str()) {
            true => Cow::Owned(text.replace(secret.as_str(), HIDDEN)),
            false => text,
        })
    }

    /// One line through the interface `log`.
    pub(crate) fn line(&mut self, level: Level, message: &str, fields: &[(String, String)]) -> Result<(), CallStop> {
        let size = fields.iter().fold(message.len(), |sum, (name, value)| sum + name.len() + value.len());
        self.count(1, size)?;
        let safe = |text: &str| escaped(&self.without_secrets(text), LINE);
        let mut text = safe(message);
        let last = escaped(&text, LAST);
        for (name, value) in fields {
            text.push_str(&format!(" {}={}", safe(name), safe(value)));
        }
        emit(level, &self.plugin, &text);
        self.last = last;
        Ok(())
    }

    /// The message of the last line that was logged, escaped and cut; `None` where there was none.
    pub(crate) fn last_logged(&self) -> Option<String> {
        (!self.last.is_empty()).then(|| self.last.clone())
    }

    /// Bytes of a standard stream; whole lines go to the log.
    pub(crate) fn write(&mut self, channel: Channel, bytes: &[u8]) -> Result<(), CallStop> {
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.count(lines, bytes.len())?;
        if channel == Channel::Err {
            self.tail.extend(bytes);
            let excess = self.tail.len().saturating_sub(TAIL);
            self.tail.drain(..excess);
        }
        let pending = match channel {
            Channel::Out => &mut self.out,
            Channel::Err => &mut self.err,
        };
        pending.extend_from_slice(bytes);
        let Some(end) = pending.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let rest = pending.split_off(end + 1);
        let whole = std::mem::replace(pending, rest);
        let level = match channel {
            Channel::Out => Level::Info,
            Channel::Err => Level::Warn,
        };
        for line in whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let line = String::from_utf8_lossy(line);
            emit(level, &self.plugin, &escaped(&self.without_secrets(&line), LINE));
        }
        Ok(())
    }

    /// The end of what was written to the standard error, as one escaped line; `None` where nothing was.
    pub(crate) fn last_words(&self) -> Option<String> {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let text = String::from_utf8_lossy(&tail);
        let text = self.without_secrets(&text);
        let lines: Vec<String> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("note: run with `RUST_BACKTRACE"))
            .map(|line| escaped(line, TAIL))
            .collect();
        (!lines.is_empty()).then(|| lines.join(" "))
    }

    fn count(&mut self, lines: u64, bytes: usize) -> Result<(), CallStop> {
        self.lines = self.lines.saturating_add(lines);
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.lines > self.most_lines {
            return Err(CallStop::Limit(BudgetLimit::LogLines));
        }
        if self.bytes > self.most_bytes {
            return Err(CallStop::Limit(BudgetLimit::LogBytes));
        }
        Ok(())
    }
}

/// The text without control characters, which could forge lines or move a terminal's cursor, and at most `most` bytes long.
pub(crate) fn escaped(text: &str, most: usize) -> String {
    escaped_but(text, most, |_| false)
}

fn escaped_but(text: &str, most: usize, kept: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len().min(most));
    for character in text.chars() {
        if safe.len() >= most {
            safe.push('…');
            break;
        }
        if moves_text(character) && !kept(character) {
            safe.extend(character.escape_default());
        } else {
            safe.push(character);
        }
    }
    safe
}

fn emit(level: Level, plugin: &str, text: &str) {
    match level {
        Level::Trace => tracing::trace!(target: "orangery::guest", plugin, "{text}"),
        Level::Debug => tracing::debug!(target: "orangery::guest", plugin, "{text}"),
        Level::Info => tracing::info!(target: "orangery::guest", plugin, "{text}"),
        Level::Warn => tracing::warn!(target: "orangery::guest", plugin, "{text}"),
        Level::Error => tracing::error!(target: "orangery::guest", plugin, "{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript(log_lines: u64, log_bytes: u64) -> Transcript {
        Transcript::new("p".into(), &Budget { log_lines, log_bytes, ..Budget::default() })
    }

    #[test]
    fn lines_and_bytes_of_log_and_streams_are_one_budget() {
        let mut lines = transcript(2, 100);
        assert_eq!(lines.line(Level::Info, "a", &[]), Ok(()));
        assert_eq!(lines.write(Channel::Out, b"b\nc"), Ok(()));
        assert_eq!(lines.write(Channel::Err, b"\n"), Err(CallStop::Limit(BudgetLimit::LogLines)));
        let mut bytes = transcript(100, 4);
        assert_eq!(bytes.line(Level::Info, "a", &[("b".into(), "c".into())]), Ok(()));
        assert_eq!(bytes.write(Channel::Out, b"de"), Err(CallStop::Limit(BudgetLimit::LogBytes)));
    }

    #[test]
    fn the_last_words_are_the_end_of_standard_error_on_one_line() {
        let mut some = transcript(100, 1 << 20);
        some.write(Channel::Out, b"not this\n").unwrap();
        some.write(Channel::Err, &[b'x'; TAIL]).unwrap();
        some.write(Channel::Err, b"\nthread main panicked:\n\x1b[31mboom\nnote: run with `RUST_BACKTRACE=1`\n")
            .unwrap();
        let words = some.last_words().unwrap();
        assert!(words.ends_with("x thread main panicked: \\u{1b}[31mboom"), "{words}");
        assert!(words.len() < TAIL + 10);
        assert_eq!(transcript(1, 1).last_words(), None);
    }

    #[test]
    fn the_last_message_is_kept_without_its_fields() {
        let mut some = transcript(100, 1 << 20);
        assert_eq!(some.last_logged(), None);
        some.line(Level::Warn, "first", &[]).unwrap();
        some.line(Level::Trace, &format!("a\nb{}", "x".repeat(LAST)), &[("c".into(), "d".into())]).unwrap();
        assert_eq!(some.last_logged().unwrap(), format!("a\\nb{}…", "x".repeat(LAST - 4)));
    }

    #[test]
    fn words_of_a_credential_are_blotted_out_of_all_that_is_said() {
        let mut some = transcript(100, 1 << 20);
        let token = "eyJhbGciOiJSUzI1NiJ9.payload";
        some.hide(&serde_json::json!({
            "kubeconfig": format!("users:\n- user: {{token: {token}}}\n"),
            "more": [{"key": format!("{token}.signature")}],
            "expires": 3600,
        }));
        assert_eq!(
            some.message_of(&format!("{token}.signature and \"{token}\" of users:"), 100),
            "[...] and \"[...]\" of users:"
        );
        some.write(Channel::Err, format!("panicked at {token}\n").as_bytes()).unwrap();
        assert_eq!(some.last_words().unwrap(), "panicked at [...]");
        some.line(Level::Debug, &format!("with {token}"), &[]).unwrap();
        assert_eq!(some.last_logged().unwrap(), "with [...]");
    }

    #[test]
    fn a_text_keeps_its_lines_and_nothing_else_that_moves_a_cursor() {
        let some = transcript(1, 1);
        assert_eq!(some.message_of("a\tb\r\n  c\r\x1b[2J\r\n", 100), "a\tb\n  c\\r\\u{1b}[2J\n");
        assert_eq!(some.message_of(&"x\n".repeat(9), 5), "x\nx\nx…");
        assert_eq!(some.message_of(&"x".repeat(9), 5), "xxxxx…");
    }

    #[test]
    fn a_line_cannot_forge_another_or_be_endless() {
        assert_eq!(escaped("a\nlevel=error\r\u{202e}\u{61c}", 100), "a\\nlevel=error\\r\\u{202e}\\u{61c}");
        assert_eq!(escaped(&"é".repeat(9), 4), "éé…");
    }
}
