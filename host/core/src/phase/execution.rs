//! The phases of an Execution (EXE-05).

use crate::phase::phases;

phases! {
    /// Where an Execution stands in its job.
    Execution, working: [Progressing, Deleting],
    {
        /// Deploy items are created, updated, and orphans deleted.
        Init => Progressing;
        /// Deploy items are triggered in the order of their dependencies.
        Progressing => Completing;
        /// Exports are collected.
        Completing => Succeeded;
        /// All items succeeded.
        Succeeded ends Rest;
        /// The job failed.
        Failed ends Rest;
        /// All deploy items get their deletion timestamp.
        InitDelete => Deleting;
        /// Deploy items are triggered in reverse order.
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
    fn exe_05_the_phases_of_an_execution() {
        assert_eq!(
            table(Execution::ALL),
            "Init -> Progressing | Failed
Progressing -> Completing | Failed (children at work)
Completing -> Succeeded | Failed
Succeeded -> - | -
Failed -> - | -
InitDelete -> Deleting | DeleteFailed
Deleting -> - | DeleteFailed (children at work)
DeleteFailed -> - | -
"
        );
    }
}
