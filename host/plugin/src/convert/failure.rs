//! Why an engine says that rendering failed, and what it says of a template. It is shown to users, so it is cut, and has
//! neither credentials nor control characters.

use orangery_blueprint::rendering::{Findings, InputReference, InputStep, RenderFailure};

use super::place::{Allowance, AnswerPosition};
use crate::{
    bindings::template::exports::orangery::template::{check, template},
    budget::Budget,
    error::Error,
    transcript::Transcript,
};

/// The longest message, and the longest snippet, of a failure.
const MOST_WORDS: usize = 8 << 10;
/// The longest name of a file in it.
const MOST_PATH: usize = 1 << 10;
/// How many paths a failure may have (`wit/template/0.1.0/template.wit`).
const MOST_READS: usize = 16;
/// How many bytes the fields of such a path may have, with one byte for each of its steps.
const MOST_READ: usize = 256;

/// A failure of a rendering.
pub(crate) fn render_failure(
    of: template::Failure,
    budget: &Budget,
    transcript: &Transcript,
) -> Result<RenderFailure, Error> {
    let allowance = Allowance::new(budget);
    failure(&AnswerPosition::root("failure", &allowance), of, transcript)
}

/// What an engine says of a template.
pub(crate) fn findings(of: check::Findings, budget: &Budget, transcript: &Transcript) -> Result<Findings, Error> {
    let allowance = Allowance::new(budget);
    let root = AnswerPosition::root("", &allowance);
    let check::Findings { failures, references } = of;
    let reference = |check::Reference { path, file, line, column }| InputReference {
        path: path.iter().map(|name| transcript.message_of(name, MOST_PATH)).collect(),
        file: file.map(|file| transcript.message_of(&file, MOST_PATH)),
        line,
        column,
    };
    Ok(Findings {
        failures: root.each("failures", failures, |at, of| failure(at, of, transcript))?,
        references: references.into_iter().map(reference).collect(),
    })
}

fn failure(at: &AnswerPosition<'_>, of: template::Failure, transcript: &Transcript) -> Result<RenderFailure, Error> {
    let template::Failure { message, file, line, column, snippet, reads } = of;
    if reads.len() > MOST_READS {
        return Err(at.field("reads").nonsense(format!("has {} paths; at most {MOST_READS} are taken", reads.len())));
    }
    Ok(RenderFailure {
        message: transcript.message_of(&message, MOST_WORDS),
        file: file.map(|file| transcript.message_of(&file, MOST_PATH)),
        line,
        column,
        snippet: snippet.map(|snippet| transcript.message_of(&snippet, MOST_WORDS)),
        reads: at.each("reads", reads, |at, path| input_path(at, path, transcript))?,
        transient: false,
    })
}

fn input_path(
    at: &AnswerPosition<'_>,
    of: Vec<template::InputStep>,
    transcript: &Transcript,
) -> Result<Vec<InputStep>, Error> {
    let length = |step: &template::InputStep| match step {
        template::InputStep::Field(name) => 1 + name.len(),
        template::InputStep::Items | template::InputStep::Entries => 1,
    };
    let bytes: usize = of.iter().map(length).sum();
    if bytes > MOST_READ {
        return Err(at.nonsense(format!("has {bytes} bytes; at most {MOST_READ} are taken")));
    }
    let step = |step| match step {
        template::InputStep::Field(name) => InputStep::Field(transcript.message_of(&name, MOST_READ)),
        template::InputStep::Items => InputStep::Items,
        template::InputStep::Entries => InputStep::Entries,
    };
    Ok(of.into_iter().map(step).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str) -> template::InputStep {
        template::InputStep::Field(name.to_owned())
    }

    fn converted(reads: Vec<Vec<template::InputStep>>) -> Result<Vec<Vec<InputStep>>, String> {
        let of =
            template::Failure { message: "no".into(), file: None, line: Some(1), column: None, snippet: None, reads };
        let budget = Budget::default();
        let transcript = Transcript::new("test".into(), &budget);
        render_failure(of, &budget, &transcript).map(|failure| failure.reads).map_err(|error| error.to_string())
    }

    #[test]
    fn paths_are_taken_up_to_their_limits() {
        let path = || vec![field("imports"), template::InputStep::Items, template::InputStep::Entries];
        let expected = vec![InputStep::Field("imports".into()), InputStep::Items, InputStep::Entries];
        assert_eq!(converted(vec![path(); 16]), Ok(vec![expected; 16]));
        assert_eq!(
            converted(vec![path(); 17]).unwrap_err(),
            "the component's answer makes no sense: failure.reads has 17 paths; at most 16 are taken"
        );
        let longest = "x".repeat(255);
        assert_eq!(converted(vec![vec![field(&longest)]]), Ok(vec![vec![InputStep::Field(longest.clone())]]));
        assert_eq!(
            converted(vec![path(), vec![field(&longest), template::InputStep::Items]]).unwrap_err(),
            "the component's answer makes no sense: failure.reads[1] has 257 bytes; at most 256 are taken"
        );
    }

    #[test]
    fn fields_have_no_control_characters() {
        let expected = vec![vec![InputStep::Field("\\u{1b}[2J".into())]];
        assert_eq!(converted(vec![vec![field("\x1b[2J")]]), Ok(expected));
    }

    #[test]
    fn limits_components_the_words_of_a_failure_are_cut() {
        let budget = Budget::default();
        let transcript = Transcript::new("test".into(), &budget);
        let said = |more: usize| {
            let (words, path) = ("a".repeat(MOST_WORDS + more), "b".repeat(MOST_PATH + more));
            let (message, snippet, file) = (words.clone(), Some(words), Some(path));
            let of = template::Failure { message, file, line: None, column: None, snippet, reads: vec![] };
            let failure = render_failure(of, &budget, &transcript).unwrap();
            [failure.message, failure.snippet.unwrap(), failure.file.unwrap()]
        };
        let whole = ["a".repeat(MOST_WORDS), "a".repeat(MOST_WORDS), "b".repeat(MOST_PATH)];
        assert_eq!(said(0), whole);
        assert_eq!(said(1), whole.map(|text| text + "…"));
    }
}
