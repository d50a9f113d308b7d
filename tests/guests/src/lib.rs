//! What the guests share: the contract, without the SDK, so that each can lie.

wit_bindgen::generate!({
    world: "deployer-with-uninstall",
    path: "../../wit/deployer/0.1.0",
    pub_export_macro: true,
    default_bindings_module: "orangery_guests",
});

pub use exports::orangery::deployer::{
    deploy::{self, Item},
    uninstall, validate,
};
pub use orangery::deployer::{
    cluster, log,
    plan::{Completion, Gate, Next, ObjectWrite, Ownership, Proposal, Stage, Write},
    types::{ClusterRef, Fault, ObjectKey, Problem},
};

/// A proposal of one stage that writes these objects.
pub fn writing(objects: Vec<String>) -> Proposal {
    let write = |object| ObjectWrite {
        object,
        inject: vec![],
        on: ClusterRef::Target,
        how: Write::Apply,
        owned: Ownership::Managed,
        at_creation: None,
        before_deletion: None,
    };
    let writes = objects.into_iter().map(write).collect();
    let stage = Stage { name: "objects".into(), removals: vec![], writes, gate: Gate::Accepted, timeout: None };
    Proposal {
        stages: vec![stage],
        next: Next::Finish(Completion { exports: vec![], afterwards: vec![] }),
        recover: None,
        status: None,
        deletion_order: vec![],
        pruning_order: vec![],
    }
}

/// Makes a component of one function from an item to an answer.
#[macro_export]
macro_rules! guest {
    ($plan:expr) => {
        struct Guest;

        impl $crate::deploy::Guest for Guest {
            fn plan(of: $crate::Item) -> Result<$crate::Proposal, $crate::Fault> {
                $plan(of)
            }
        }

        impl $crate::uninstall::Guest for Guest {
            fn plan(of: $crate::Item) -> Result<$crate::Proposal, $crate::Fault> {
                $plan(of)
            }
        }

        impl $crate::validate::Guest for Guest {
            fn schema() -> String {
                "{}".into()
            }

            fn check(_config: String) -> Vec<$crate::Problem> {
                vec![]
            }
        }

        $crate::export!(Guest with_types_in $crate);
    };
}
