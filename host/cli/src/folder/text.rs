//! From the text of a file to its documents.

use std::path::Path;

use serde_json::Value;

use crate::folder::{FolderError, Origin};

/// One document of a file.
pub(super) struct Document {
    pub(super) origin: Origin,
    pub(super) value: Value,
}

/// The documents of a YAML or JSON file. Empty ones are null.
pub(super) fn documents(file: &Path, content: &str) -> Result<Vec<Document>, FolderError> {
    split(content)
        .into_iter()
        .map(|(skipped, text)| {
            let value = serde_saphyr::from_str::<Value>(&text).map_err(|error| {
                let location = error.location();
                let at =
                    |of: fn(&serde_saphyr::Location) -> u64| location.as_ref().map_or(1, of).try_into().unwrap_or(1);
                let (line, column): (usize, usize) =
                    (at(serde_saphyr::Location::line), at(serde_saphyr::Location::column));
                syntax(file, content, (skipped + line, column), &error.to_string())
            })?;
            let origin = Origin { file: file.to_owned(), line: skipped + first_line(&text) };
            Ok(Document { origin, value })
        })
        .collect()
}

/// The error of a parser, with the line it is about.
fn syntax(file: &Path, content: &str, (line, column): (usize, usize), cause: &str) -> FolderError {
    let snippet = content.lines().nth(line.saturating_sub(1)).map_or_else(String::new, |text| {
        let number = line.to_string();
        let (margin, indent) = (" ".repeat(number.len()), " ".repeat(column.saturating_sub(1)));
        format!("\n  {number} | {text}\n  {margin} | {indent}^")
    });
    let cause = cause.lines().next().unwrap_or_default().trim_end_matches('.').to_owned();
    FolderError::Syntax { file: file.to_owned(), line, column, cause, snippet }
}

/// The texts between lines that begin with `---`, each with the number of lines before it. Such a line is a border even
/// inside a block of text (YAML 1.2, 9.1.2).
fn split(content: &str) -> Vec<(usize, String)> {
    let mut documents = vec![(0, String::new())];
    for (number, line) in content.lines().enumerate() {
        match line.strip_prefix("---") {
            Some(rest) if rest.is_empty() || rest.starts_with([' ', '\t']) => {
                documents.push((number, format!("   {rest}\n")));
            }
            Some(_) | None => {
                if let Some((_, text)) = documents.last_mut() {
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
    }
    documents.retain(|(_, text)| text.lines().any(is_content));
    documents
}

fn is_content(line: &str) -> bool {
    let line = line.trim_start();
    !line.is_empty() && !line.starts_with('#')
}

/// The line on which a document says something, from 1.
fn first_line(text: &str) -> usize {
    text.lines().position(is_content).unwrap_or_default() + 1
}
