//! What has to know that a root takes the policy `OnChange` up or gives it up.

use orangery_api::installation::Installation;

use crate::{
    dependency::{Dependency, Dependents, Watch},
    tree::{observes, with_descendants},
};

/// Where a root takes the policy `OnChange` up or gives it up, the gate expressions of what is below it are asked anew or
/// forgotten.
pub(crate) const fn policy_of_root<O>() -> Dependency<O, Installation> {
    Dependency {
        what: "to change its policy",
        through: "the tree below it",
        dependents: Dependents::Reached(with_descendants),
        watch: Watch::Wakes(|change| match (change.before, change.after) {
            (Some(before), Some(after)) => observes(before) != observes(after),
            (None, _) | (_, None) => false,
        }),
    }
}
