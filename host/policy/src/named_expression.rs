//! Lists of named expressions that administrators write: what is wrong with them is told alike.

use orangery_expression::{Expression, Type};

/// An expression of a list, by its name.
pub(crate) struct NamedExpression<'a> {
    pub(crate) name: &'a str,
    /// `None` where a component answers.
    pub(crate) expression: Option<&'a str>,
}

/// What is wrong with the list of a line: it has too many entries, one without a name, or one that can never be used.
pub(crate) fn fault<'a>(
    line: &str,
    most: usize,
    entries: impl ExactSizeIterator<Item = NamedExpression<'a>>,
    variables: &[&'static str],
) -> Option<String> {
    let number = entries.len();
    if number > most {
        return Some(format!("{line} has {number} entries; it may have {most}"));
    }
    let variables: Vec<(&str, Type)> = variables.iter().map(|name| (*name, Type::Any)).collect();
    let faults = entries.enumerate().filter_map(|(number, entry)| Some((number, entry.fault(&variables)?)));
    faults.map(|(number, why)| format!("{line}[{number}] {why}")).next()
}

impl NamedExpression<'_> {
    fn fault(&self, variables: &[(&str, Type)]) -> Option<String> {
        if self.name.is_empty() {
            return Some("has no name; give it one".to_owned());
        }
        let compiled = Expression::compile(self.expression?);
        let unusable = compiled.and_then(|expression| expression.check(variables)).err()?;
        Some(format!("({}) has an expression that cannot be used: {unusable}", self.name))
    }
}
