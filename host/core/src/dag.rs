//! One graph for everything that has an order: deploy items by `dependsOn`, sibling installations by what they export
//! and import. It answers two questions: is the graph sound, and what may start next in which direction.

use std::collections::{BTreeMap, BTreeSet};

/// Which way the graph is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A node after everything it depends on.
    Forward,
    /// A node after everything that depends on it.
    Backward,
}

/// A directed graph of names; an edge points from a node to what it depends on. The order of declaration is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dag {
    nodes: Vec<String>,
    depends_on: BTreeMap<String, BTreeSet<String>>,
    dependents: BTreeMap<String, BTreeSet<String>>,
}

/// Why a graph is not sound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DagError {
    /// Two nodes of one name.
    #[error("{name} is defined twice; give every one its own name")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// An edge to a node that does not exist.
    #[error("{node} depends on {unknown}, which does not exist; known are: {known}")]
    Unknown {
        /// Whose dependency it is.
        node: String,
        /// What it names.
        unknown: String,
        /// All names, for the user to compare.
        known: String,
    },
    /// A cycle, with its members in order, the first repeated at the end.
    #[error("{} depend on each other in a circle; remove one of these dependencies", members.join(" -> "))]
    Cycle {
        /// The members.
        members: Vec<String>,
    },
}

impl Dag {
    /// A sound graph, or the first thing wrong with it.
    pub fn new<'a>(edges: impl IntoIterator<Item = (&'a str, Vec<&'a str>)>) -> Result<Self, DagError> {
        let dag = Self::unchecked(edges)?;
        dag.known()?;
        dag.acyclic()?;
        Ok(dag)
    }

    /// A graph that may have cycles and unknown names: what does not exist counts as not yet satisfied, so that such a
    /// graph ends in the stuck check (EXE-30) and never in a hang. Only duplicate names are refused.
    pub fn unchecked<'a>(edges: impl IntoIterator<Item = (&'a str, Vec<&'a str>)>) -> Result<Self, DagError> {
        let mut dag = Self::default();
        for (node, dependencies) in edges {
            if dag.depends_on.contains_key(node) {
                return Err(DagError::Duplicate { name: node.to_owned() });
            }
            dag.nodes.push(node.to_owned());
            for dependency in &dependencies {
                dag.dependents.entry((*dependency).to_owned()).or_default().insert(node.to_owned());
            }
            dag.depends_on.insert(node.to_owned(), dependencies.into_iter().map(str::to_owned).collect());
        }
        Ok(dag)
    }

    fn known(&self) -> Result<(), DagError> {
        for node in &self.nodes {
            if let Some(unknown) =
                self.before(node, Direction::Forward).find(|name| !self.depends_on.contains_key(*name))
            {
                return Err(DagError::Unknown {
                    node: node.clone(),
                    unknown: unknown.to_owned(),
                    known: self.nodes.join(", "),
                });
            }
        }
        Ok(())
    }

    fn acyclic(&self) -> Result<(), DagError> {
        let mut done: BTreeSet<&str> = BTreeSet::new();
        for start in &self.nodes {
            let mut path: Vec<&str> = Vec::new();
            if let Some(members) = self.cycle_from(start, &mut path, &mut done) {
                return Err(DagError::Cycle { members });
            }
        }
        Ok(())
    }

    fn cycle_from<'a>(
        &'a self,
        node: &'a str,
        path: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<String>> {
        if let Some(start) = path.iter().position(|member| *member == node) {
            return Some(path.iter().skip(start).chain([&node]).map(|member| (*member).to_owned()).collect());
        }
        if done.contains(node) {
            return None;
        }
        path.push(node);
        for next in self.before(node, Direction::Forward) {
            if let Some(cycle) = self.cycle_from(next, path, done) {
                return Some(cycle);
            }
        }
        path.pop();
        done.insert(node);
        None
    }

    /// The nodes in the order they were declared.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(String::as_str)
    }

    /// What comes right before a node: its dependencies going forward, its dependents going backward.
    pub fn before(&self, node: &str, direction: Direction) -> impl Iterator<Item = &str> {
        let edges = match direction {
            Direction::Forward => &self.depends_on,
            Direction::Backward => &self.dependents,
        };
        edges.get(node).into_iter().flatten().map(String::as_str)
    }

    /// All that has to come before a node going forward: its dependencies, theirs, and so on.
    pub fn all_before(&self, node: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut ahead: Vec<&str> = self.before(node, Direction::Forward).collect();
        while let Some(next) = ahead.pop() {
            if found.insert(next) {
                ahead.extend(self.before(next, Direction::Forward));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_and_the_declared_order() {
        let dag = Dag::new([("b", vec!["a"]), ("a", vec![]), ("c", vec!["a", "b"])]).unwrap();
        assert_eq!(dag.nodes().collect::<Vec<_>>(), ["b", "a", "c"]);
        assert_eq!(dag.before("c", Direction::Forward).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(dag.before("a", Direction::Backward).collect::<Vec<_>>(), ["b", "c"]);
    }

    #[test]
    fn c_31_duplicate_unknown_and_self_dependencies_are_named() {
        assert_eq!(
            Dag::new([("a", vec![]), ("a", vec![])]).unwrap_err().to_string(),
            "a is defined twice; give every one its own name"
        );
        assert_eq!(
            Dag::new([("a", vec!["x"]), ("b", vec![])]).unwrap_err().to_string(),
            "a depends on x, which does not exist; known are: a, b"
        );
        assert_eq!(
            Dag::new([("a", vec!["a"])]).unwrap_err(),
            DagError::Cycle { members: vec!["a".into(), "a".into()] }
        );
        assert_eq!(
            Dag::new([("b", vec!["a", "a"]), ("a", vec![])]).unwrap().before("b", Direction::Forward).count(),
            1
        );
    }

    #[test]
    fn wf_16_a_cycle_is_named_without_the_way_to_it() {
        let error = Dag::new([("start", vec!["a"]), ("a", vec!["b"]), ("b", vec!["c"]), ("c", vec!["a"])]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a -> b -> c -> a depend on each other in a circle; remove one of these dependencies"
        );
    }

    #[test]
    fn a_deep_chain_and_a_wide_diamond_are_sound() {
        let names: Vec<String> = (0..500).map(|n| format!("n{n}")).collect();
        let chain = names
            .iter()
            .enumerate()
            .map(|(n, name)| (name.as_str(), names[n.saturating_sub(1)..n].iter().map(String::as_str).collect()));
        assert!(Dag::new(chain).is_ok_and(|dag| dag.nodes().count() == 500));
    }
}
