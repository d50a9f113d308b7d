//! What all scenarios share: a script is played line by line, and its report is compared with the recorded one.

use std::{fmt::Write, fs, path::Path};

use jiff::Timestamp;
use orangery_core::{
    condition::{Condition, observe},
    phase::Phase,
    walk::StatusUpdate,
};

/// Plays the commands of one family of scripts.
pub(crate) trait Player: Default {
    /// Carries out one command and reports what the core decides.
    fn command(&mut self, words: &[&str], report: &mut Report);
}

/// What a script printed so far.
#[derive(Default)]
pub(crate) struct Report(String);

impl Report {
    /// One line.
    pub(crate) fn line(&mut self, text: &str) {
        writeln!(self.0, "{}", text.trim_end()).expect("a string takes every text");
    }

    /// What another report says.
    pub(crate) fn append(&mut self, other: &Report) {
        self.0.push_str(&other.0);
    }

    /// Where a walk rests: phase, what is waited for, and the conditions. `prefix` begins every line.
    pub(crate) fn rest<P: Phase>(&mut self, prefix: &str, rest: &StatusUpdate<P>) {
        self.line(&format!("{prefix}phase {}{}", rest.phase, if rest.ended { ", job finished" } else { "" }));
        for waiting in rest.wait.iter().flat_map(|wait| wait.objects()) {
            self.line(&format!("{prefix}waits for {waiting}"));
        }
        if let Some(limit) = rest.wait.as_ref().and_then(orangery_core::step::Wait::again_in) {
            self.line(&format!("{prefix}looks again in {} s", limit.as_secs()));
        }
        self.conditions(prefix, &observe(&rest.state(), 1, &[], Timestamp::UNIX_EPOCH).conditions);
    }

    /// Conditions, one on each line, with their codes.
    pub(crate) fn conditions(&mut self, prefix: &str, conditions: &[Condition]) {
        for condition in conditions {
            let codes: Vec<String> = condition.codes.iter().map(ToString::to_string).collect();
            let codes = if codes.is_empty() { String::new() } else { format!(" [{}]", codes.join(", ")) };
            let Condition { type_, status, reason, message, .. } = condition;
            self.line(&format!("{prefix}{type_}={status:?} {reason}{codes} {message}"));
        }
    }
}

fn play<P: Player>(script: &str) -> String {
    let (mut player, mut report) = (P::default(), Report::default());
    for line in script.lines() {
        if line.is_empty() || line.starts_with('#') {
            report.line(line);
            continue;
        }
        report.line(&format!("> {line}"));
        let words: Vec<&str> = line.split_whitespace().collect();
        player.command(&words, &mut report);
    }
    report.0
}

/// Plays every script of a folder.
#[track_caller]
pub(crate) fn check<P: Player>(folder: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(folder);
    let entries = fs::read_dir(&folder).expect("the folder can be read").map(|entry| entry.expect("an entry").path());
    let mut scripts: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "txt")).collect();
    scripts.sort();
    assert!(!scripts.is_empty(), "no scripts in {}", folder.display());
    let mut wrong = Vec::new();
    for script in scripts {
        let text = fs::read_to_string(&script).expect("the script can be read");
        assert!(text.starts_with("# "), "{} does not begin by saying what it shows", script.display());
        let printed = play::<P>(&text);
        let recorded = script.with_extension("out");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&recorded, &printed).expect("the report can be written");
        } else if fs::read_to_string(&recorded).unwrap_or_default() != printed {
            wrong.push(format!("{}:\n{printed}", script.display()));
        }
    }
    assert!(wrong.is_empty(), "not as recorded (UPDATE=1 records anew):\n{}", wrong.join("\n"));
}
