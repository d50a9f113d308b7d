//! A drawing that follows the tree: redrawn in place on a terminal, one line a change everywhere else.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    time::Duration,
};

use orangery_core::name::Namespace;

use crate::{
    terminal::{Size, Terminal},
    tree::{
        NodeKind, NodeState, Tree, TreeNode,
        draw::{self, TreeView},
    },
};

/// Kind, namespace and name.
type LiveObjectId = (NodeKind, Namespace, String);

/// How long a node is at work.
#[derive(Clone, Copy, Debug)]
enum Timing {
    /// At work since.
    Since(Duration),
    /// It was at work this long.
    Took(Duration),
}

/// A drawing that follows the tree. Times are those since the drawing began, as the caller measures them.
#[derive(Debug)]
pub struct Live {
    /// The namespace that need not be named.
    home: Namespace,
    /// Lines on the terminal that the next drawing replaces.
    drawn: usize,
    /// What was said of each node, where nothing can be redrawn.
    report: BTreeMap<LiveObjectId, String>,
    timings: BTreeMap<LiveObjectId, Timing>,
}

impl Live {
    /// Nothing drawn yet.
    pub fn new(home: impl Into<Namespace>) -> Self {
        Self { home: home.into(), drawn: 0, report: BTreeMap::new(), timings: BTreeMap::new() }
    }

    /// Draws the tree as it is `at` this time.
    pub fn show(&mut self, terminal: &mut Terminal, mut tree: Tree, at: Duration) -> io::Result<()> {
        self.measure(&mut tree, at);
        match terminal.size() {
            Some(size) => self.redraw(terminal, &tree, size),
            None => self.append(terminal, &tree, at),
        }
    }

    /// Draws the tree for the last time: where nothing can be redrawn, the whole of it follows the changes.
    pub fn finish(&mut self, terminal: &mut Terminal, mut tree: Tree, at: Duration) -> io::Result<()> {
        self.measure(&mut tree, at);
        if let Some(size) = terminal.size() {
            return self.redraw(terminal, &tree, size);
        }
        self.append(terminal, &tree, at)?;
        let view = TreeView { ink: terminal.ink(), is_wide: false, home: &self.home, columns: None };
        draw::lines(&tree, view).into_iter().try_for_each(|line| terminal.painted(&line))
    }

    /// Leaves the drawing where it is: what is written next stands below it.
    pub fn leave(&mut self) {
        self.drawn = 0;
    }

    /// Notes who is at work since when. The wire knows whole seconds only.
    fn measure(&mut self, tree: &mut Tree, at: Duration) {
        each(&mut tree.roots, &mut |node| {
            let timing = self.timings.get(&id(node)).copied();
            let now = match (node.standing, timing) {
                (NodeState::Running, None | Some(Timing::Took(_))) => Timing::Since(at),
                (NodeState::Succeeded | NodeState::Failed, Some(Timing::Since(since))) => {
                    Timing::Took(at.saturating_sub(since))
                }
                (_, Some(timing)) => timing,
                (_, None) => return,
            };
            self.timings.insert(id(node), now);
            if let (Timing::Took(took), NodeState::Succeeded | NodeState::Failed) = (now, node.standing) {
                node.took = Some(took);
            }
        });
    }

    fn redraw(&mut self, terminal: &mut Terminal, tree: &Tree, size: Size) -> io::Result<()> {
        let view =
            TreeView { ink: terminal.ink(), is_wide: false, home: &self.home, columns: Some(size.columns.get()) };
        let lines = fitting(tree, view, size.rows.get().saturating_sub(1).max(1));
        let drawn = std::mem::replace(&mut self.drawn, lines.len());
        terminal.redraw(drawn, &lines)
    }

    fn append(&mut self, terminal: &mut Terminal, tree: &Tree, at: Duration) -> io::Result<()> {
        let mut report = BTreeMap::new();
        let mut lines = Vec::new();
        for root in &tree.roots {
            let home = if root.namespace == self.home { String::new() } else { format!("{}/", root.namespace) };
            self.tell(root, &home, &mut report, &mut lines);
        }
        let mut titles = BTreeSet::new();
        tree.roots.iter().for_each(|root| collect_titles(root, &mut titles));
        // An item that had no object is no other one when it gets it.
        let gone = self.report.iter().filter(|(id, _)| !report.contains_key(*id) && !titles.contains(id.2.as_str()));
        for ((kind, _, name), _) in gone {
            lines.push(format!("{:<12}  {name}  gone", kind.as_str()));
        }
        self.report = report;
        lines.into_iter().try_for_each(|line| terminal.line(format_args!("{:>8.3}s  {line}", at.as_secs_f64())))
    }

    fn tell(&self, node: &TreeNode, above: &str, report: &mut BTreeMap<LiveObjectId, String>, lines: &mut Vec<String>) {
        let path = format!("{above}{}", node.title);
        let (_, phase) = draw::phase(node);
        if self.report.get(&id(node)) != Some(&phase) {
            let line = format!("{:<12}  {path}  {phase}  {}", node.kind.as_str(), draw::note(node));
            lines.push(line.trim_end().to_owned());
        }
        report.insert(id(node), phase);
        let below = format!("{path}/");
        for child in &node.children {
            let above = if child.kind == NodeKind::Execution { above } else { below.as_str() };
            self.tell(child, above, report, lines);
        }
    }
}

fn id(node: &TreeNode) -> LiveObjectId {
    (node.kind, node.namespace.clone(), node.name.to_string())
}

fn each(nodes: &mut [TreeNode], visit: &mut impl FnMut(&mut TreeNode)) {
    for node in nodes {
        visit(node);
        each(&mut node.children, visit);
    }
}

/// The lines that fit: where the whole tree does not, roots that succeeded are only counted, and the rest is cut.
fn fitting(tree: &Tree, view: TreeView<'_>, rows: usize) -> Vec<String> {
    let whole = draw::lines(tree, view);
    if whole.len() <= rows {
        return whole;
    }
    let (succeeded, others): (Vec<&TreeNode>, Vec<&TreeNode>) =
        tree.roots.iter().partition(|root| root.standing == NodeState::Succeeded);
    let others = Tree { roots: others.into_iter().cloned().collect() };
    let mut lines = draw::lines(&others, view);
    if !succeeded.is_empty() {
        lines.insert(0, format!("{} of {} succeeded", succeeded.len(), tree.roots.len()));
    }
    if lines.len() > rows {
        let kept = rows.saturating_sub(1);
        let more = lines.len() - kept;
        lines.truncate(kept);
        lines.push(format!("… and {more} lines more"));
    }
    lines
}
fn collect_titles<'a>(node: &'a TreeNode, titles: &mut BTreeSet<&'a str>) {
    titles.insert(&node.title);
    node.children.iter().for_each(|child| collect_titles(child, titles));
}
