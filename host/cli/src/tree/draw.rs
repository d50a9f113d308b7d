//! Drawing a tree: one line a node, in columns.

use std::time::Duration;

use orangery_core::{error::cleaned, name::Namespace};

use crate::{
    terminal::{Ink, Paint},
    tree::{NodeKind, NodeState, Tree, TreeNode},
};

/// How a tree is drawn.
#[derive(Clone, Copy, Debug)]
pub struct TreeView<'a> {
    /// Colours.
    pub ink: Ink,
    /// With object names, jobs and plugins.
    pub is_wide: bool,
    /// The namespace that need not be named; empty names every one.
    pub home: &'a Namespace,
    /// Longer lines are cut.
    pub columns: Option<usize>,
}

/// A line of the drawing, before it is painted.
struct TreeRow {
    cells: Vec<(Paint, String)>,
}

/// Draws the tree, a line a node, aligned in columns: name, kind, phase, and what there is to say.
pub fn lines(tree: &Tree, view: TreeView<'_>) -> Vec<String> {
    let names_namespaces = tree.roots.iter().any(|root| root.namespace != *view.home);
    let mut rows = Vec::new();
    for root in &tree.roots {
        let lead = if names_namespaces { format!("{}/", root.namespace) } else { String::new() };
        push(root, &lead, "", view.is_wide, &mut rows);
    }
    let widths = widths(&rows);
    rows.iter().map(|row| row.render(&widths, view)).collect()
}

/// Adds the rows of a node. `lead` stands before its name, `below` before the branches of its children.
fn push(node: &TreeNode, lead: &str, below: &str, is_wide: bool, rows: &mut Vec<TreeRow>) {
    let label = match (&node.item_type, &node.target) {
        (Some(item_type), Some(target)) if is_wide => format!("{} ({} → {target})", node.title, short(item_type)),
        (Some(item_type), Some(target)) => format!("{} ({} → {})", node.title, short(item_type), abbreviated(target)),
        (Some(item_type), None) => format!("{} ({})", node.title, short(item_type)),
        (None, _) => node.title.clone(),
    };
    let mut cells = vec![
        (Paint::Plain, format!("{lead}{label}")),
        (Paint::Dim, node.kind.as_str().to_owned()),
        phase(node),
        (if node.is_cause() { Paint::Bad } else { Paint::Plain }, note(node)),
    ];
    if is_wide {
        let plugin = node.plugin.clone().unwrap_or_default();
        cells.extend([node.name.to_string(), node.job.to_string(), plugin].map(|text| (Paint::Dim, text)));
    }
    for (_, text) in &mut cells {
        *text = cleaned(text, usize::MAX);
    }
    rows.push(TreeRow { cells });
    let mut children = node.children.iter().peekable();
    while let Some(child) = children.next() {
        let (branch, guide) = if children.peek().is_some() { ("├─ ", "│  ") } else { ("└─ ", "   ") };
        push(child, &format!("{below}{branch}"), &format!("{below}{guide}"), is_wide, rows);
    }
}

/// `kubernetes-manifest` of `landscaper.gardener.cloud/kubernetes-manifest`.
fn short(item_type: &str) -> &str {
    item_type.rsplit('/').next().unwrap_or(item_type)
}

/// Targets that an installation hands down have a hash for a name (`docs/wire.md` §2.4), which tells nobody anything.
fn abbreviated(target: &str) -> String {
    let is_hash = target.len() == 32 && target.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if is_hash { cut(target, 9).0 } else { target.to_owned() }
}

/// The phase column: the phase, or the word for having none.
pub(super) fn phase(node: &TreeNode) -> (Paint, String) {
    let or = |word: &str| if node.phase.is_empty() { word.to_owned() } else { node.phase.clone() };
    match node.standing {
        NodeState::Idle => (Paint::Dim, or("Idle")),
        NodeState::Pending => (Paint::Dim, "Pending".to_owned()),
        NodeState::Running => {
            (Paint::Busy, if is_resting(&node.phase) { "Requested".to_owned() } else { node.phase.clone() })
        }
        NodeState::Succeeded => (Paint::Good, or("Succeeded")),
        NodeState::Failed => (Paint::Bad, or("Failed")),
    }
}

/// Whether a phase belongs to a job that is over: the one asked for has not begun.
fn is_resting(phase: &str) -> bool {
    matches!(phase, "" | "Succeeded" | "Failed" | "DeleteFailed")
}

/// What there is to say: how far, how long, what it waits for, why it failed.
pub(super) fn note(node: &TreeNode) -> String {
    let mut notes = Vec::new();
    if node.kind == NodeKind::Execution {
        notes.extend(node.items.map(|items| format!("{}/{}", items.done, items.total)));
    }
    notes.extend(node.took.and_then(length).filter(|_| node.kind != NodeKind::Execution));
    notes.extend(node.waits_for.as_deref().and_then(|text| text.lines().next()).map(str::to_owned));
    notes.extend(node.error.as_ref().map(|error| error.reason.clone()));
    notes.join("  ")
}

/// A length of time for people: `4ms`, `0.05s`, `12s`, `3m07s`. What was measured as zero whole seconds says nothing.
pub(super) fn length(took: Duration) -> Option<String> {
    let seconds = took.as_secs();
    match (seconds, took.subsec_nanos()) {
        (0, 0) => None,
        (0, 0..10_000_000) => Some(format!("{}ms", took.as_millis().max(1))),
        (0..60, 0) => Some(format!("{seconds}s")),
        (0..10, _) => Some(format!("{:.2}s", took.as_secs_f64())),
        (10..60, _) => Some(format!("{:.1}s", took.as_secs_f64())),
        (60..3600, _) => Some(format!("{}m{:02}s", seconds / 60, seconds % 60)),
        (_, _) => Some(format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60)),
    }
}

/// The width of each column.
fn widths(rows: &[TreeRow]) -> Vec<usize> {
    let columns = rows.iter().map(|row| row.cells.len()).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.cells.get(column))
            .map(|(_, text)| text.chars().count())
            .max()
            .unwrap_or_default()
    };
    (0..columns).map(width).collect()
}

impl TreeRow {
    fn render(&self, widths: &[usize], view: TreeView<'_>) -> String {
        let mut left = view.columns.unwrap_or(usize::MAX);
        let mut line = String::new();
        let last = self.cells.iter().rposition(|(_, text)| !text.is_empty()).unwrap_or_default();
        for (column, ((paint, text), width)) in self.cells.iter().zip(widths).enumerate().take(last + 1) {
            let (display, rest) = cut(text, left);
            line.push_str(&view.ink.paint(*paint, &display));
            left = rest;
            let gap = (width.saturating_sub(text.chars().count()) + GAP).min(left);
            if column < last && *width > 0 {
                line.extend(std::iter::repeat_n(' ', gap));
                left -= gap;
            }
            if left == 0 {
                break;
            }
        }
        line.truncate(line.trim_end_matches(' ').len());
        line
    }
}

/// Spaces between columns.
const GAP: usize = 2;

/// The text as far as it fits, and how much is left of the line.
pub(super) fn cut(text: &str, room: usize) -> (String, usize) {
    let count = text.chars().count();
    if count <= room {
        return (text.to_owned(), room - count);
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    (format!("{kept}…"), 0)
}
