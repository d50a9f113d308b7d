//! Schedules by chance. The suite plays those that have found something, and with `CI` one more that is drawn;
//! `SCHEDULES=600` draws others for as many seconds. A failure names its seed, and `SEED=4711` plays that one alone:
//!
//! ```text
//! SCHEDULES=600 cargo test --workspace --test cluster -- schedules --nocapture
//! ```
//!
//! `SOAK=3600` plays them before one operator for as many seconds, and prints what it holds after each:
//!
//! ```text
//! SOAK=3600 cargo test --workspace --test kube -- soak --nocapture
//! ```

use std::{
    env,
    str::FromStr,
    time::{Duration, Instant},
};

use orangery_tests::{dice::drawn, schedule};

/// These are always played: each has found something.
///
/// - 2: a root that was to go waited for one that imported from it, which waited in `Init` for the first one's job.
/// - 6: a deletion in the job that the children had ended before (its first write was lost) triggered none of them.
/// - 8: a sub-installation that was deleted by hand, after it had ended its parent's job, was waited for in vain.
/// - 1795330732008: an Execution ended while an item worked that its spec had lost during the job.
/// - 1795344710013: an Installation met a change of its own just after it had triggered its subobjects, came back to `Init`,
///   and failed there while they worked.
const FIXED: [u64; 5] = [2, 6, 8, 1_795_330_732_008, 1_795_344_710_013];

fn asked<T: FromStr>(variable: &str) -> Option<T> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

#[tokio::test]
async fn under_random_schedules_no_invariant_breaks_and_every_job_ends() {
    if let Some(seed) = asked("SEED") {
        return schedule::play(seed, &crate::ground(), crate::binary().await).await;
    }
    let length = asked("SCHEDULES").map(Duration::from_secs);
    let fewest = FIXED.len() + schedule::drawn_beside();
    let begun = Instant::now();
    let mut played = 0;
    for seed in FIXED.into_iter().chain(drawn()..) {
        if played >= fewest && length.is_none_or(|length| begun.elapsed() >= length) {
            break;
        }
        schedule::play(seed, &crate::ground(), crate::binary().await).await;
        played += 1;
    }
    println!("{played} schedules in {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_soak_of_schedules_leaves_an_operator_with_no_more_than_it_had() {
    let length = asked("SOAK").map(Duration::from_secs).unwrap_or_default();
    let first = asked("SEED").unwrap_or_else(drawn);
    schedule::soak(first, length, &crate::ground(), crate::binary().await).await;
}
