//! The phases of an Installation (INS-10).

use crate::phase::phases;

phases! {
    /// Where an Installation stands in its job.
    Installation, working: [CleanupOrphaned, ObjectsCreated, Progressing, TriggerDelete, Deleting],
    {
        /// Imports are read, templates rendered, subobjects created.
        Init => CleanupOrphaned;
        /// Sub-installations that left the blueprint are deleted.
        CleanupOrphaned => ObjectsCreated;
        /// The job is passed to all subobjects.
        ObjectsCreated => Progressing;
        /// The subobjects work.
        Progressing => Completing;
        /// Exports are collected and written.
        Completing => Succeeded;
        /// All went well.
        Succeeded ends Rest;
        /// The job failed.
        Failed ends Rest;
        /// Successors are waited for, subobjects get their deletion timestamp.
        InitDelete => TriggerDelete;
        /// The job is passed to all subobjects.
        TriggerDelete => Deleting;
        /// The subobjects are being deleted.
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
    fn ins_10_the_phases_of_an_installation() {
        assert_eq!(
            table(Installation::ALL),
            "Init -> CleanupOrphaned | Failed
CleanupOrphaned -> ObjectsCreated | Failed (children at work)
ObjectsCreated -> Progressing | Failed (children at work)
Progressing -> Completing | Failed (children at work)
Completing -> Succeeded | Failed
Succeeded -> - | -
Failed -> - | -
InitDelete -> TriggerDelete | DeleteFailed
TriggerDelete -> Deleting | DeleteFailed (children at work)
Deleting -> - | DeleteFailed (children at work)
DeleteFailed -> - | -
"
        );
    }

    #[test]
    fn wire_strings_parse_back_and_unknown_ones_do_not() {
        let parsed: Vec<_> = Installation::ALL.iter().filter_map(|phase| Installation::parse(phase.as_str())).collect();
        assert_eq!(parsed, Installation::ALL);
        assert_eq!((Installation::parse(""), Installation::parse("init")), (None, None));
    }
}
