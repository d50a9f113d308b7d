use futures::FutureExt as _;

use super::*;

const LONG: Duration = Duration::from_secs(3600);

fn key(text: &str) -> Key {
    let (namespace, name) = text.split_once('/').unwrap();
    Key::new(namespace, name)
}

/// The next key, which must come.
async fn next(queue: &Queue) -> String {
    tokio::time::timeout(Duration::from_secs(10), queue.next(|_| false)).await.expect("a key is due").0.to_string()
}

/// The keys that are due now, in the order in which they would be called.
fn due(queue: &Queue) -> Vec<String> {
    let mut plan = queue.plan();
    let now = Instant::now();
    plan.promote(now);
    std::iter::from_fn(|| plan.take(now, |_| false)).map(|(key, _)| key.to_string()).collect()
}

#[tokio::test]
async fn a_key_woken_many_times_is_called_once() {
    let queue = Queue::new();
    for _ in 0..3 {
        queue.wake(key("a/x"));
    }
    assert_eq!(next(&queue).await, "a/x");
    assert_eq!(due(&queue), Vec::<String>::new());
}

#[tokio::test]
async fn a_key_is_never_called_twice_at_once_and_a_wake_meanwhile_is_not_lost() {
    let queue = Queue::new();
    queue.wake(key("a/x"));
    assert_eq!(next(&queue).await, "a/x");
    queue.wake(key("a/x"));
    queue.wake_in(key("a/x"), Duration::ZERO);
    assert_eq!(due(&queue), Vec::<String>::new());
    queue.finish(&key("a/x"), Ended::Settled);
    assert_eq!(next(&queue).await, "a/x");
    queue.finish(&key("a/x"), Ended::Settled);
    assert_eq!(due(&queue), Vec::<String>::new());
}

#[tokio::test]
async fn the_earliest_time_wins() {
    for times in [[LONG, Duration::from_millis(1)], [Duration::from_millis(1), LONG]] {
        let queue = Queue::new();
        for time in times {
            queue.wake_in(key("a/x"), time);
        }
        assert_eq!(queue.plan().due.len(), 1);
        assert_eq!(next(&queue).await, "a/x");
    }
}

#[tokio::test]
async fn a_call_settles_the_times_before_it_but_not_those_set_meanwhile() {
    let queue = Queue::new();
    queue.wake_in(key("a/x"), LONG);
    queue.wake(key("a/x"));
    assert_eq!(next(&queue).await, "a/x");
    assert_eq!(queue.plan().due.len(), 0);
    queue.wake_in(key("a/x"), Duration::from_millis(1));
    queue.finish(&key("a/x"), Ended::Settled);
    assert_eq!(next(&queue).await, "a/x");
}

#[tokio::test]
async fn a_call_knows_whether_an_event_or_a_timer_made_it() {
    let queue = Queue::new();
    queue.wake_in(key("a/timer"), Duration::ZERO);
    assert_eq!(queue.next(|_| false).await, (key("a/timer"), CallCause::Time));
    queue.wake_in(key("a/both"), Duration::ZERO);
    queue.plan().promote(Instant::now());
    queue.wake(key("a/both"));
    assert_eq!(queue.next(|_| false).await, (key("a/both"), CallCause::Event));
    for (cause, silence) in [(CallCause::Event, false), (CallCause::Time, false), (CallCause::Time, true)] {
        queue.count(cause, silence);
    }
    let QueueCounts { by_event, by_time, by_stale_watch, .. } = queue.counts();
    assert_eq!((by_event, by_time, by_stale_watch), (1, 1, 1));
}

#[tokio::test]
async fn times_come_in_their_order() {
    let queue = Queue::new();
    queue.wake_in(key("a/late"), Duration::from_millis(20));
    queue.wake_in(key("a/early"), Duration::from_millis(1));
    assert_eq!([next(&queue).await, next(&queue).await], ["a/early", "a/late"]);
}

#[test]
fn a_call_that_failed_is_left_to_its_next_attempt_whatever_woke_it_meanwhile() {
    for (ended, again) in [(Ended::Settled, 1), (Ended::Conflict, 1), (Ended::Retried, 0), (Ended::Panicked, 0)] {
        let queue = Queue::new();
        queue.wake(key("a/x"));
        assert_eq!(queue.plan().take(Instant::now(), |_| false), Some((key("a/x"), CallCause::Event)));
        queue.wake(key("a/x"));
        queue.finish(&key("a/x"), ended);
        queue.wake_in(key("a/x"), LONG);
        assert_eq!(due(&queue).len(), again);
    }
}

#[tokio::test]
async fn a_waiting_caller_is_woken_by_a_new_key() {
    let queue = Queue::new();
    queue.wake_in(key("a/late"), LONG);
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { next(&queue).await }
    });
    tokio::task::yield_now().await;
    queue.wake(key("a/x"));
    assert_eq!(waiting.await.unwrap(), "a/x");
}

#[test]
fn namespaces_take_turns_and_within_one_the_first_woken_is_first() {
    let queue = Queue::new();
    for text in ["a/3", "a/1", "a/2", "b/1", "c/1", "c/2"] {
        queue.wake(key(text));
    }
    assert_eq!(due(&queue), ["a/3", "b/1", "c/1", "a/1", "c/2", "a/2"]);
}

#[tokio::test]
async fn a_forgotten_key_leaves_nothing_behind() {
    let queue = Queue::new();
    queue.wake(key("a/x"));
    assert_eq!(next(&queue).await, "a/x");
    queue.wake_in(key("a/x"), LONG);
    queue.finish(&key("a/x"), Ended::Settled);
    queue.forget(&key("a/x"));
    let plan = queue.plan();
    assert_eq!((plan.entries.len(), plan.due.len(), plan.lanes.len(), plan.turns.len()), (0, 0, 0, 0));
}

#[tokio::test]
async fn the_tally_counts_what_happened() {
    let queue = Queue::new();
    for text in ["a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a/7"] {
        queue.wake(key(text));
    }
    for ended in [Ended::Settled, Ended::Conflict, Ended::Retried, Ended::Stalled, Ended::Panicked] {
        let (called, _) = queue.next(|_| false).await;
        queue.finish(&called, ended);
    }
    queue.next(|_| false).await;
    let counted = QueueCounts { busy: DurationCounts::default(), waited: DurationCounts::default(), ..queue.counts() };
    assert_eq!((queue.counts().busy.count(), queue.counts().waited.count()), (5, 6));
    let expected = QueueCounts {
        queued: 1,
        running: 1,
        settled: 1,
        conflicts: 1,
        retried: 1,
        stalled: 1,
        panicked: 1,
        ..QueueCounts::default()
    };
    assert_eq!(counted, expected);
}

#[test]
fn c_283_limits_queue_fewer_calls_of_a_suspected_namespace_are_under_way() {
    let queue = Queue::new();
    for name in ["a", "b"].iter().flat_map(|of| (0..20).map(move |number| format!("{of}/{number:02}"))) {
        queue.wake(key(&name));
    }
    let called = || -> Vec<String> {
        let next = || queue.next(|namespace| **namespace == *"a").now_or_never();
        std::iter::from_fn(next).map(|(key, _)| key.to_string()).collect()
    };
    let first = called();
    let of = |namespace: &str| first.iter().filter(|key| key.starts_with(namespace)).count();
    assert_eq!((of("a"), of("b")), (MOST_CALLS_OF_A_SUSPECTED_NAMESPACE, 20));
    queue.finish(&key("a/03"), Ended::Settled);
    assert_eq!(called(), ["a/16"]);
}

#[test]
fn c_39_a_namespace_has_so_many_calls_under_way_and_no_more_while_others_are_called() {
    let queue = Queue::new();
    for number in 0..=MOST_CALLS_OF_A_NAMESPACE {
        queue.wake(key(&format!("a/{number:04}")));
    }
    let first = due(&queue);
    assert_eq!(first.len(), MOST_CALLS_OF_A_NAMESPACE);
    queue.wake(key("b/x"));
    assert_eq!(due(&queue), ["b/x"]);
    queue.finish(&key("a/0000"), Ended::Settled);
    assert_eq!(due(&queue), [format!("a/{MOST_CALLS_OF_A_NAMESPACE:04}")]);
}
