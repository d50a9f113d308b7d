//! Names in messages: the first of them, and how many more there are. How many there are is up to others.

use std::{
    collections::BTreeSet,
    fmt::{self, Display},
};

/// Names that a message lists.
const MOST_LISTED: usize = 20;

const NONE: &str = "none";

/// The first names in their order, and how many more there are; nothing where there are none.
pub fn joined<T: Display>(names: impl IntoIterator<Item = T>) -> String {
    let mut names = names.into_iter();
    let first: Vec<String> = names.by_ref().take(MOST_LISTED).map(|name| name.to_string()).collect();
    sentence(&first, names.count())
}

/// As [`joined`]; `none` where there are none.
pub fn listed<T: Display>(names: impl IntoIterator<Item = T>) -> String {
    let mut names = names.into_iter().peekable();
    if names.peek().is_none() { NONE.to_owned() } else { joined(names) }
}

/// As [`listed`], the first being those that are sorted before the others.
pub fn listed_sorted<T: Display>(names: impl IntoIterator<Item = T>) -> String {
    let mut first: BTreeSet<String> = BTreeSet::new();
    let mut count = 0;
    for name in names {
        count += 1;
        first.insert(name.to_string());
        if first.len() > MOST_LISTED {
            first.pop_last();
        }
    }
    let first: Vec<String> = first.into_iter().collect();
    if count == 0 { NONE.to_owned() } else { sentence(&first, count - first.len()) }
}

/// The same of names that come one by one; `none` where none has come.
#[derive(Debug, Default)]
pub struct NameListing {
    first: Vec<String>,
    count: usize,
}

impl NameListing {
    /// One more, whose name is made only where it is among the first.
    pub fn add(&mut self, name: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < MOST_LISTED {
            self.first.push(name());
        }
    }
}

impl Display for NameListing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            0 => f.write_str(NONE),
            count => f.write_str(&sentence(&self.first, count - self.first.len())),
        }
    }
}

fn sentence(first: &[String], more: usize) -> String {
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    first.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_listing_so_many_names_are_listed_and_the_others_counted() {
        let twenty: Vec<String> = (0..20).map(|n| format!("n{n:02}")).collect();
        let more = (20..23).map(|n| format!("n{n:02}"));
        let all: Vec<String> = twenty.iter().cloned().chain(more).collect();
        for listing in [joined, listed, listed_sorted] {
            assert_eq!(listing(twenty.clone()), twenty.join(", "));
            assert_eq!(listing(all.clone()), format!("{} and 3 more", twenty.join(", ")));
            assert_eq!(listing(vec!["b".to_owned()]), "b");
        }
        let mut listing = NameListing::default();
        assert_eq!(listing.to_string(), NONE);
        twenty.iter().for_each(|name| listing.add(|| name.clone()));
        assert_eq!(listing.to_string(), twenty.join(", "));
        (20..23).for_each(|_| listing.add(|| panic!("it is not listed")));
        assert_eq!(listing.to_string(), format!("{} and 3 more", twenty.join(", ")));
        let backwards: Vec<String> = all.into_iter().rev().collect();
        assert_eq!(listed_sorted(backwards.clone()), format!("{} and 3 more", twenty.join(", ")));
        assert!(listed(backwards).starts_with("n22, n21, "));
    }

    #[test]
    fn where_there_are_no_names_it_is_said_or_not() {
        let none: [&str; 0] = [];
        assert_eq!((joined(none), listed(none), listed_sorted(none)), (String::new(), "none".into(), "none".into()));
    }
}
