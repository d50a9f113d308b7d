//! `orangery policy explain`: what counts for a namespace.

use clap::Args;
use kube::Client;
use orangery_core::name::Namespace;
use orangery_policy::{ExplainedLine, PolicyOrigin, PolicySet, Profile};

use super::known;
use crate::{
    command_error::CommandError, connection::Connection, default_policy::profile, exit::Exit, terminal::Terminal,
};

const HELP: &str = "\
Examples:
  orangery policy explain team-a
  orangery policy explain team-a --default-policy compatible      where the operator runs with that flag

Of the policies that select the namespace those with the highest priority count, and each of them has to allow what is
asked. Where none does, the default policy of the operator counts.";

/// Shows what counts for a namespace, line by line, and where each line comes from.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct PolicyExplain {
    /// The namespace
    #[arg(value_parser = str::parse::<Namespace>)]
    pub namespace: Namespace,
    /// What the operator takes for namespaces that no NamespacePolicy selects
    #[arg(long, value_name = "PROFILE", default_value = "restricted", value_parser = profile())]
    pub default_policy: Profile,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl PolicyExplain {
    /// Reads policies and namespaces, and prints what counts.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let client = self.connection.client().await?;
        self.on(&client, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let policies = known::policies(client).await?;
        let namespaces = known::namespaces(client).await?;
        let labels = namespaces.get(&self.namespace);
        if labels.is_none() {
            terminal.note(format_args!("there is no namespace {}; without labels this would count", self.namespace))?;
        }
        let set = PolicySet::new(self.default_policy, policies.into_values());
        let effective = set.of(&self.namespace, &labels.cloned().unwrap_or_default());
        for policy in effective.policies() {
            match policy.origin() {
                PolicyOrigin::Named(_) => {
                    terminal.line(format_args!("{} counts, with priority {}", policy.origin(), policy.priority()))?;
                }
                PolicyOrigin::Default | PolicyOrigin::Command => {
                    terminal.line(format_args!("no NamespacePolicy selects it; the default policy counts"))?;
                }
            }
        }
        terminal.text(&table(&effective.explain()))?;
        Ok(Exit::Ok)
    }
}

/// The widest column, in characters; what is longer shifts what follows.
const WIDEST: usize = 200;

/// The lines in columns.
fn table(lines: &[ExplainedLine]) -> String {
    let header = ["POLICY", "LINE", "SAYS", "FROM"].map(str::to_owned);
    let rows = lines.iter().map(|line| {
        let ExplainedLine { policy, path, value, from } = line.clone();
        [policy, path, value, from]
    });
    let rows: Vec<[String; 4]> = std::iter::once(header).chain(rows).collect();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths = [0, 1, 2, 3].map(|column| width(column).unwrap_or_default().min(WIDEST));
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_in_columns() {
        let line = |path: &str, value: &str, from: &str| ExplainedLine {
            policy: "NamespacePolicy a".to_owned(),
            path: path.to_owned(),
            value: value.to_owned(),
            from: from.to_owned(),
        };
        let lines = [line("spec.quotas.items", "7", "policy"), line("spec.x", "false", "profile restricted")];
        assert_eq!(
            table(&lines),
            "POLICY             LINE               SAYS   FROM\n\
             NamespacePolicy a  spec.quotas.items  7      policy\n\
             NamespacePolicy a  spec.x             false  profile restricted\n"
        );
        let long = "x".repeat(100_000);
        assert!(
            table(&[line(&long, "7", "policy")]).contains(&format!("{long}  7     policy")),
            "no column is as wide"
        );
    }
}
