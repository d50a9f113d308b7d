//! One graph for everything that has an order: deploy items by `dependsOn`, sibling installations by what they export
//! and import. It answers two questions: is the graph sound, and what may start next in which direction.

use std::collections::{BTreeMap, BTreeSet};

use crate::listing;

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
        /// The names there are, for the user to compare.
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
                    known: listing::joined(&self.nodes),
                });
            }
        }
        Ok(())
    }

    /// Without calling itself: a chain may be as long as what declares it.
    fn acyclic(&self) -> Result<(), DagError> {
        let mut done: BTreeSet<&str> = BTreeSet::new();
        for start in &self.nodes {
            // The way from there, each node with what is ahead of it, and at which place of the way it is.
            let mut way = vec![(start.as_str(), self.before(start, Direction::Forward))];
            let mut places = BTreeMap::from([(start.as_str(), 0)]);
            while let Some((node, ahead)) = way.last_mut() {
                match ahead.find(|next| !done.contains(next)) {
                    Some(next) => {
                        if let Some(place) = places.insert(next, way.len()) {
                            let members = way.iter().skip(place).map(|(member, _)| *member).chain([next]);
                            return Err(DagError::Cycle { members: members.map(str::to_owned).collect() });
                        }
                        way.push((next, self.before(next, Direction::Forward)));
                    }
                    None => {
                        done.insert(node);
                        places.remove(node);
                        way.pop();
                    }
                }
            }
        }
        Ok(())
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
        self.search_before(node, |next| {
            found.insert(next);
            true
        });
        found
    }

    /// Whether all of these names have to come before a node going forward. What is further away than the last of them is not
    /// looked at.
    pub fn come_before(&self, names: &BTreeSet<&str>, node: &str) -> bool {
        let mut missing = names.clone();
        self.search_before(node, |next| {
            missing.remove(next);
            !missing.is_empty()
        });
        missing.is_empty()
    }

    /// Visits what comes before a node, each once, as long as the visit says to go on.
    fn search_before<'a>(&'a self, node: &str, mut visit: impl FnMut(&'a str) -> bool) {
        let mut seen = BTreeSet::new();
        let mut ahead: Vec<&str> = self.before(node, Direction::Forward).collect();
        while let Some(next) = ahead.pop() {
            if seen.insert(next) {
                if !visit(next) {
                    return;
                }
                ahead.extend(self.before(next, Direction::Forward));
            }
        }
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
    fn c_31_a_chain_and_a_circle_of_any_length_take_no_stack() {
        const LENGTH: usize = 100_000;
        let names: Vec<String> = (0..LENGTH).map(|n| format!("n{n}")).collect();
        let edges = |close: bool| {
            let after = |n: usize| names.get(n + 1).or(if close { names.first() } else { None });
            let edge = |(n, name): (usize, &'_ String)| (name.clone(), after(n).cloned());
            names.iter().enumerate().map(edge).collect::<Vec<_>>()
        };
        let dag = |edges: &[(String, Option<String>)]| {
            Dag::new(edges.iter().map(|(name, after)| (name.as_str(), after.iter().map(String::as_str).collect())))
        };
        assert!(dag(&edges(false)).is_ok_and(|dag| dag.nodes().count() == LENGTH));
        let circle: Vec<String> = names.iter().chain(names.first()).cloned().collect();
        assert_eq!(dag(&edges(true)), Err(DagError::Cycle { members: circle }));
    }

    #[test]
    fn c_31_a_node_that_many_ways_lead_to_is_looked_at_once() {
        let names: Vec<[String; 2]> = (0..40).map(|n| [format!("a{n}"), format!("b{n}")]).collect();
        let pairs = names.iter().zip(names.iter().skip(1).map(Some).chain([None]));
        let edges = pairs.flat_map(|(pair, next)| {
            pair.iter().map(move |name| (name.as_str(), next.into_iter().flatten().map(String::as_str).collect()))
        });
        assert!(Dag::new(edges).is_ok_and(|dag| dag.nodes().count() == 80));
    }
}
