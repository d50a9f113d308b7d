use std::sync::atomic::{AtomicUsize, Ordering};

use orangery_policy::{Policy, Profile};
use serde_json::{Value, json};

use super::*;

/// Policies with these quotas in namespace `a`.
fn policies(quotas: Value) -> NamespacePolicies {
    let policies = NamespacePolicies::new(Profile::Compatible);
    put(&policies, quotas);
    policies
}

fn put(policies: &NamespacePolicies, quotas: Value) {
    let spec = json!({"namespaces": {"names": ["a"]}, "quotas": quotas});
    policies.put_policy("team".to_owned(), Policy::read("team", &spec));
}

fn helm() -> PluginIdentity {
    PluginIdentity { name: "helm".into(), version: "0.1.0".into(), digest: "sha256:0".into(), is_pinned: true }
}

fn limits(calls: u32, memory: u32) -> CallLimits {
    let quota = |most: u32| (most > 0).then(|| Quota { most, policy: "p".to_owned(), line: "l".to_owned() });
    CallLimits { calls: quota(calls), memory: quota(memory) }
}

/// Which of the calls that wait begin, by their memory, one after the other.
fn begin(queue: &mut CallQueue<bool>, limits: &CallLimits) -> Vec<u64> {
    std::iter::from_fn(|| queue.next(limits, |has_gone| *has_gone)).map(|(memory_mib, _)| memory_mib).collect()
}

fn queue(waiting: &[(u64, bool)]) -> CallQueue<bool> {
    CallQueue { waiting: waiting.iter().copied().collect(), ..CallQueue::default() }
}

#[test]
fn c_53_no_more_calls_are_under_way_than_either_quota_allows() {
    let six = [(64, false); 6];
    let begun = [limits(0, 0), limits(2, 0), limits(0, 200), limits(4, 128), limits(1, 1024)];
    assert_eq!(begun.map(|limits| begin(&mut queue(&six), &limits).len()), [6, 2, 3, 2, 1]);
}

#[test]
fn c_53_a_large_call_is_not_overtaken_and_what_has_gone_holds_up_nobody() {
    let mut queue = queue(&[(128, false), (256, true), (256, false), (64, false)]);
    let limits = limits(8, 320);
    assert_eq!(begin(&mut queue, &limits), [128], "the large one waits, and so does the small one behind it");
    queue.release(128);
    assert_eq!(begin(&mut queue, &limits), [256, 64]);
    queue.release(256);
    queue.release(64);
    assert!(queue.is_empty() && queue.memory_mib == 0);
}

/// What is larger than the quota is refused by the policy; where that has just been lowered, such a call must not wait for ever.
#[test]
fn c_53_where_nothing_is_under_way_there_is_a_place_for_any_call() {
    let mut queue = queue(&[(512, false), (1, false)]);
    assert_eq!(begin(&mut queue, &limits(1, 256)), [512]);
    assert_eq!(begin(&mut queue, &limits(2, 256)), [0_u64; 0]);
}

#[tokio::test]
async fn c_53_a_place_comes_back_when_it_is_dropped_and_other_namespaces_have_their_own() {
    let calls = NamespaceCalls::new(&policies(json!({"calls": 1})));
    let (a, b, by) = ("a".into(), "b".into(), helm());
    let first = calls.enter(&a, &by, 64).await.ok();
    let mut given_up = calls.enter(&a, &by, 64);
    let mut second = calls.enter(&a, &by, 64);
    assert!(futures::poll!(&mut given_up).is_pending() && futures::poll!(&mut second).is_pending());
    assert!(calls.enter(&b, &by, 64).await.is_ok(), "a neighbour has no quota");
    drop(given_up);
    drop(first);
    let second = second.await.ok();
    assert_eq!(calls.queues().keys().map(ToString::to_string).collect::<Vec<_>>(), ["a"]);
    drop(second);
    assert!(calls.queues().is_empty(), "nothing is kept of a namespace without calls");
}

#[tokio::test]
async fn c_53_a_quota_that_is_raised_or_goes_lets_calls_begin_that_wait_for_it() {
    let policies = policies(json!({"memoryMiB": 64}));
    let (calls, a, by) = (NamespaceCalls::new(&policies), "a".into(), helm());
    let _first = calls.enter(&a, &by, 64).await.ok();
    let (mut second, mut third) = (calls.enter(&a, &by, 64), calls.enter(&a, &by, 64));
    assert!(futures::poll!(&mut second).is_pending() && futures::poll!(&mut third).is_pending());
    put(&policies, json!({"memoryMiB": 128}));
    let _second = second.await.ok();
    assert!(futures::poll!(&mut third).is_pending());
    put(&policies, json!({"memoryMiB": 0}));
    assert!(third.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn c_53_limits_a_call_that_waits_for_long_is_told_with_the_lines_and_leaves_the_queue() {
    let calls = NamespaceCalls::new(&policies(json!({"calls": 2, "memoryMiB": 64})));
    let (a, by) = ("a".into(), helm());
    let _first = calls.enter(&a, &by, 64).await.ok();
    let begin = tokio::time::Instant::now();
    let fault = calls.enter(&a, &by, 64).await.err().expect("there is no place");
    assert_eq!(begin.elapsed(), LONGEST_TURN);
    assert_eq!(
        fault,
        Fault::later(
            Code::PolicyViolation,
            "no call of helm 0.1.0 could begin within 10 s: namespace a has as many under way as it may by NamespacePolicy \
             team, line spec.quotas.calls (2) and NamespacePolicy team, line spec.quotas.memoryMiB (64 MiB); it is made again, \
             or have an administrator allow more there"
        )
    );
    let mut next = calls.enter(&a, &by, 1);
    assert!(futures::poll!(&mut next).is_pending());
    assert_eq!(calls.queues()[&a].waiting.iter().filter(|(_, sender)| !sender.is_closed()).count(), 1);
}

/// Counts how often it is lent and taken back.
#[derive(Default)]
struct CountedSlot {
    lent: AtomicUsize,
    taken_back: AtomicUsize,
}

impl LendableSlot for CountedSlot {
    fn lend(&self) {
        self.lent.fetch_add(1, Ordering::SeqCst);
    }

    fn take_back(&self) {
        self.taken_back.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn c_39_c_53_a_call_that_waits_for_its_namespace_lends_its_slot_and_takes_it_back() {
    let slot = Arc::new(CountedSlot::default());
    let counts = || (slot.lent.load(Ordering::SeqCst), slot.taken_back.load(Ordering::SeqCst));
    let lendable = || Some(Arc::<CountedSlot>::clone(&slot) as Arc<dyn LendableSlot>);
    let calls = NamespaceCalls::new(&policies(json!({"calls": 1})));
    let (a, by) = ("a".into(), helm());
    let first = calls.wait(&a, &by, 64, lendable()).await.ok();
    assert_eq!(counts(), (0, 0), "there was a place");
    let mut second = Box::pin(calls.wait(&a, &by, 64, lendable()));
    assert!(futures::poll!(&mut second).is_pending());
    assert_eq!(counts(), (1, 0));
    drop(first);
    assert!(second.await.is_ok());
    assert_eq!(counts(), (1, 1));
}
