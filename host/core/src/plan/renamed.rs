//! Which sub-installations go on under another name, with all that they have deployed (C-168).

use std::collections::BTreeMap;

/// What a sub-installation is made from, as far as it is known by that once it is called otherwise. Both are compared and nothing
/// else: digests will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// What it keeps where something else of it changes: component and resource of its blueprint, without a version, and of a blueprint
    /// that is written out, and so has no name, what is bound to its imports and exports. `None` where that is nothing.
    pub kept: Option<String>,
    /// The blueprint with all that is bound to it.
    pub whole: String,
}

/// Of templates without an object and objects without a template, each by its name, those that belong together: object to
/// template.
///
/// Such as say the same belong together; then those that have kept what they are known by, where no other has it.
pub fn renamed(mut templates: BTreeMap<&str, Origin>, mut objects: BTreeMap<&str, Origin>) -> BTreeMap<String, String> {
    let mut pairs = BTreeMap::new();
    objects.retain(|object, origin| {
        let same = templates.iter().find(|(_, wanted)| wanted.whole == origin.whole).map(|(name, _)| *name);
        match same {
            Some(template) => {
                templates.remove(template);
                pairs.insert((*object).to_owned(), template.to_owned());
                false
            }
            None => true,
        }
    });
    for (object, origin) in objects.iter().filter(|(_, origin)| origin.kept.is_some()) {
        let is_of = |other: &Origin| other.kept == origin.kept;
        let mut same = templates.iter().filter(|(_, wanted)| is_of(wanted));
        let is_alone = objects.values().filter(|other| is_of(other)).count() == 1;
        if let (true, Some((template, _)), None) = (is_alone, same.next(), same.next()) {
            pairs.insert((*object).to_owned(), (*template).to_owned());
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a=app/x b=/y`: name, what is kept, and the whole of it.
    fn origins(text: &str) -> BTreeMap<&str, Origin> {
        text.split_whitespace()
            .map(|word| {
                let (name, rest) = word.split_once('=').unwrap();
                let (kept, whole) = rest.split_once('/').unwrap();
                let kept = Some(kept.to_owned()).filter(|kept| !kept.is_empty());
                (name, Origin { kept, whole: whole.to_owned() })
            })
            .collect()
    }

    #[track_caller]
    fn check(templates: &str, objects: &str, pairs: &[(&str, &str)]) {
        let pairs = pairs.iter().map(|(object, template)| ((*object).to_owned(), (*template).to_owned())).collect();
        assert_eq!(renamed(origins(templates), origins(objects)), pairs, "{templates:?} of {objects:?}");
    }

    #[test]
    fn c_168_what_says_the_same_goes_on_also_where_several_have_the_blueprint() {
        check("new=app/x", "old=app/x", &[("old", "new")]);
        check("n=app/x m=app/y", "p=app/y q=app/x", &[("p", "m"), ("q", "n")]);
        check("n=/x m=/y", "p=/y q=/x", &[("p", "m"), ("q", "n")]);
        check("n=app/x", "p=app/x q=app/x", &[("p", "n")]);
        check("n=app/x m=app/x", "p=app/x", &[("p", "m")]);
    }

    #[test]
    fn c_168_what_has_changed_as_well_goes_on_where_no_other_has_its_blueprint() {
        check("new=app/x", "old=app/y", &[("old", "new")]);
        check("n=app/x m=other/x", "p=app/y q=other/y", &[("p", "n"), ("q", "m")]);
        check("n=app/x m=app/y", "p=app/z", &[]);
        check("n=app/x", "p=app/y q=app/z", &[]);
        check("n=app/x m=app/y", "p=app/x q=app/z", &[("p", "n"), ("q", "m")]);
        check("n=app/x", "p=other/y", &[]);
    }

    #[test]
    fn c_168_what_has_kept_nothing_is_another_one() {
        check("new=/x", "old=/y", &[]);
        check("new=/x", "old=app/y", &[]);
        check("", "old=app/y", &[]);
        check("new=app/x", "", &[]);
    }
}
