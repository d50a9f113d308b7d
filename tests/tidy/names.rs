//! One name, one thing: the name of a type says which one it is without its path.

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use crate::{
        modules,
        repository::{display, none},
    };

    /// The most type names that crates of the host may share: what is on the wire has the name of what it means.
    const MOST_SHARED: usize = 40;

    /// The places of each type name, by crate: `core`, then `host/core/src/error.rs:12`.
    type TypePlaces<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Vec<String>>>;

    fn by_name<'a>(types: impl IntoIterator<Item = (&'a str, &'a str, String)>) -> TypePlaces<'a> {
        let mut places = TypePlaces::new();
        for (package, name, place) in types {
            places.entry(name).or_default().entry(package).or_default().push(place);
        }
        places
    }

    /// The names that one crate has twice, each with its places.
    fn twice_in_a_crate(places: &TypePlaces<'_>) -> Vec<String> {
        let twice = places.iter().flat_map(|(name, crates)| crates.values().map(move |at| (name, at)));
        twice.filter(|(_, at)| at.len() > 1).map(|(name, at)| format!("{name}: {}", at.join(", "))).collect()
    }

    /// The names that several crates have.
    fn shared<'a>(places: &TypePlaces<'a>) -> BTreeSet<&'a str> {
        places.iter().filter(|(_, crates)| crates.len() > 1).map(|(name, _)| *name).collect()
    }

    /// The types of the host's crates outside tests.
    fn of_the_host() -> TypePlaces<'static> {
        let files = modules::reached().iter().filter(|(_, file)| !file.for_tests);
        let files = files.filter(|(path, _)| display(path).starts_with("host/"));
        by_name(files.flat_map(|(path, file)| {
            let place = move |line: usize| format!("{}:{line}", display(path));
            file.source.types.iter().map(move |one| (file.package.as_str(), one.name.as_str(), place(one.line)))
        }))
    }

    #[test]
    fn a_name_counts_twice_in_one_crate_and_as_shared_in_two() {
        let at = |package, name, place: &str| (package, name, place.to_owned());
        let places =
            by_name([at("a", "Key", "a:1"), at("a", "Key", "a:2"), at("a", "Plan", "a:3"), at("b", "Plan", "b:1")]);
        assert_eq!(twice_in_a_crate(&places), ["Key: a:1, a:2"]);
        assert_eq!(shared(&places), BTreeSet::from(["Plan"]));
    }

    #[test]
    fn no_crate_has_two_types_of_one_name() {
        none("say in the name which one it is", twice_in_a_crate(&of_the_host()));
    }

    #[test]
    fn few_type_names_stand_in_several_crates() {
        let places = of_the_host();
        let shared = shared(&places);
        let count = shared.len();
        println!("{count} of {} type names stand in several crates: {shared:?}", places.len());
        assert!(
            count <= MOST_SHARED,
            "{count} type names stand in several crates, allowed are {MOST_SHARED}: {shared:?}"
        );
    }
}
