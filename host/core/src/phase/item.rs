//! The phases of a DeployItem (`docs/wire.md` §3.2).

use crate::phase::phases;

phases! {
    /// Where a DeployItem stands in its job.
    Item, working: [],
    {
        /// Picked up.
        Init => Progressing;
        /// The proposal is being carried out.
        Progressing => Succeeded;
        /// All went well.
        Succeeded ends Rest;
        /// The job failed.
        Failed ends Rest;
        /// Picked up for deletion.
        InitDelete => Deleting;
        /// The inventory is being deleted.
        Deleting ends Gone;
        /// The deletion failed.
        DeleteFailed ends Rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::tests::table;

    #[test]
    fn the_phases_of_a_deploy_item() {
        assert_eq!(
            table(Item::ALL),
            "Init -> Progressing | Failed
Progressing -> Succeeded | Failed
Succeeded -> - | -
Failed -> - | -
InitDelete -> Deleting | DeleteFailed
Deleting -> - | DeleteFailed
DeleteFailed -> - | -
"
        );
    }
}
