//! How the answer of one engine to a rendering differs from that of another.

use orangery_proposal::recorded::differences;

use crate::rendering::{Output, RenderFailure, Rendered};

/// How the answer of a candidate differs from that of the version in use; empty where they are the same. No part of an output is
/// shown: what templates make of secrets and of randomness may stand anywhere in it.
pub fn rendering_differences(
    in_use: &Result<Rendered, RenderFailure>,
    candidate: &Result<Rendered, RenderFailure>,
) -> Vec<String> {
    match (in_use, candidate) {
        (Ok(one), Ok(other)) => {
            let kept = (one.state != other.state).then(|| "what it keeps for the next job differs".to_owned());
            let warned = (one.warnings != other.warnings).then(|| "it warns otherwise".to_owned());
            output_difference(&one.output, &other.output).into_iter().chain(kept).chain(warned).collect()
        }
        (Ok(_), Err(failure)) => vec![format!("the version in use renders, the candidate fails: {failure}")],
        (Err(_), Ok(_)) => vec!["the version in use fails, the candidate renders".to_owned()],
        (Err(one), Err(other)) if one == other => Vec::new(),
        (Err(_), Err(other)) => vec![format!("the candidate fails otherwise: {other}")],
    }
}

fn output_difference(one: &Output, other: &Output) -> Option<String> {
    match (one, other) {
        (one, other) if one == other => None,
        (Output::Text(one), Output::Text(other)) => {
            let same = one.lines().zip(other.lines()).take_while(|(one, other)| one == other).count();
            Some(format!("its output differs from line {} on", same + 1))
        }
        (Output::Document(one), Output::Document(other)) => {
            let places = differences(one, other, usize::MAX).len();
            let noun = if places == 1 { "place" } else { "places" };
            Some(format!("its output differs in {places} {noun}"))
        }
        (Output::Text(_), Output::Document(_)) | (Output::Document(_), Output::Text(_)) => {
            Some("its output has another form".to_owned())
        }
    }
}
