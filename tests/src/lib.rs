//! Scaffolding for the suites beside this crate, written once: the binary under test, for each test an operator and a server
//! with nothing of other tests, waiting on conditions with a deadline, cases that are folders of YAML.
//!
//! Every test has a process of its own and talks to it over HTTP, as `kubectl` does. Nothing here polls: waiting is a
//! watch, and every wait has a deadline whose failure says what was there instead.

pub mod approver;
pub mod binary;
pub mod canary;
#[expect(clippy::indexing_slicing, reason = "a JSON value answers null for what it does not have")]
pub mod case;
pub mod chart;
pub mod cluster;
pub mod containers;
pub mod control_group;
pub mod crash_points;
pub mod deployers;
pub mod dice;
pub mod effects;
pub mod empty;
pub mod end_state;
#[expect(clippy::indexing_slicing, reason = "a JSON value answers null for what it does not have")]
pub mod external_deployer;
pub mod fault_injection;
pub mod former_cluster;
pub mod helm;
#[expect(clippy::indexing_slicing, reason = "a JSON value answers null for what it does not have")]
pub mod history;
pub mod invariants;
pub mod kstatus;
pub mod kube;
pub mod kubelet;
pub mod long_wait;
pub mod machine;
pub mod matching;
pub mod node;
pub mod objects;
pub mod own_template;
pub mod proxy;
pub mod recording;
pub mod rendered;
pub mod requests;
pub mod road;
pub mod schedule;
pub mod silence;
pub mod soak;
pub mod tree;
pub mod upgrades;
pub mod usage;
pub mod webhook;
pub mod world;
pub mod write_log;
pub mod yaml;

/// One test for each case in a folder, called as its own folder is, with underscores. It runs on what the suite's `cluster()`
/// answers. What such a test needs besides stands before the folder, as attributes.
#[macro_export]
#[expect(clippy::crate_in_macro_def, reason = "the server is the suite's")]
macro_rules! cases {
    ($(#[$attribute:meta])* $folder:literal: $($name:ident),+ $(,)?) => {
        $crate::cases!(@each [$(#[$attribute])*] $folder: $($name),+);
    };
    (@each $attributes:tt $folder:literal: $($name:ident),+) => {
        $($crate::cases!(@one $attributes $folder: $name);)+
    };
    (@one [$(#[$attribute:meta])*] $folder:literal: $name:ident) => {
            $(#[$attribute])*
            #[tokio::test]
            async fn $name() {
                let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join($folder);
                let folder = folder.join(stringify!($name).replace('_', "-"));
                let cluster = crate::cluster().await;
                $crate::case::run(&folder, &cluster).await;
            }
    };
}

/// One test for each recording of `tests/golden`, called as its folder is, with underscores. It runs on what the suite's
/// `cluster_with()` answers. What such a test needs besides stands before its group, as attributes.
#[macro_export]
#[expect(clippy::crate_in_macro_def, reason = "the server is the suite's")]
macro_rules! recordings {
    ($($(#[$attribute:meta])* { $($name:ident),+ $(,)? })+) => {
        $($crate::recordings!(@each [$(#[$attribute])*] $($name),+);)+

        /// Those that are played.
        const PLAYED: &[&str] = &[$($(stringify!($name)),+),+];
    };
    (@each $attributes:tt $($name:ident),+) => {
        $($crate::recordings!(@one $attributes $name);)+
    };
    (@one [$(#[$attribute:meta])*] $name:ident) => {
            $(#[$attribute])*
            #[tokio::test]
            async fn $name() {
                let case = stringify!($name).replace('_', "-");
                let arguments = $crate::recording::exceptions::arguments(&case);
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                let cluster = crate::cluster_with(&arguments).await;
                $crate::recording::play::play(&$crate::recording::folder(&case), &cluster).await;
            }
    };
}

/// The folder of the repository.
pub fn repository() -> &'static std::path::Path {
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the tests lie one level below the root")
}

/// Fails the test.
#[expect(clippy::panic, reason = "a panic is how a test fails")]
#[track_caller]
pub fn fail(message: &str) -> ! {
    panic!("{message}")
}
