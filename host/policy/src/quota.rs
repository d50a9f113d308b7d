//! How much of the operator the objects of a namespace may have at once.

use std::fmt;

use crate::{
    effective::EffectivePolicy,
    profile::Profile,
    spec::{PolicySpec, Quotas},
};

/// What is counted, for a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaKind {
    /// Deploy items of components that are under way at once.
    Items,
    /// Calls of components that are under way at once.
    Calls,
    /// MiB of memory that these may take, by the limits of their components.
    MemoryMib,
    /// MiB that come from registries and web servers within an hour.
    FetchedMibPerHour,
}

/// The least that a policy allows of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// How much, in the unit of its kind.
    pub most: u32,
    /// The policy that says so, such as `NamespacePolicy team-a`.
    pub policy: String,
    /// Its line, such as `spec.quotas.calls`.
    pub line: String,
}

/// The longest that a policy makes jobs which start by themselves wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconcileInterval {
    /// From one job to the next one, in seconds.
    pub seconds: u32,
    /// The policy that says so, such as `NamespacePolicy team-a`.
    pub policy: String,
    /// Its line, such as `spec.quotas.minReconcileIntervalSeconds`.
    pub line: String,
}

const MIN_RECONCILE_INTERVAL: &str = "spec.quotas.minReconcileIntervalSeconds";

impl QuotaKind {
    /// The line of a policy.
    pub(crate) fn line(self) -> &'static str {
        match self {
            Self::Items => "spec.quotas.items",
            Self::Calls => "spec.quotas.calls",
            Self::MemoryMib => "spec.quotas.memoryMiB",
            Self::FetchedMibPerHour => "spec.quotas.fetchedMiBPerHour",
        }
    }

    fn of(self, quotas: &Quotas) -> Option<u32> {
        match self {
            Self::Items => quotas.items,
            Self::Calls => quotas.calls,
            Self::MemoryMib => quotas.memory_mib,
            Self::FetchedMibPerHour => quotas.fetched_mib_per_hour,
        }
    }
}

impl EffectivePolicy {
    /// The least that a policy allows; `None` for any number.
    pub fn quota(&self, kind: QuotaKind) -> Option<Quota> {
        let quotas = self.policies().filter_map(|policy| {
            let lines = policy.lines().ok()?;
            let (most, line) = of_lines(lines, kind)?;
            Some(Quota { most, policy: policy.origin().to_string(), line })
        });
        quotas.min_by_key(|quota| quota.most)
    }

    /// The least time between jobs that start by themselves: of several policies the longest; `None` where any will do. A policy
    /// that cannot be used says what the profile `restricted` does (C-184).
    pub fn min_reconcile_interval(&self) -> Option<ReconcileInterval> {
        let intervals = self.policies().filter_map(|policy| {
            let restricted = Profile::Restricted.spec();
            let lines = policy.lines().unwrap_or(restricted);
            let own = lines.quotas.min_reconcile_interval_seconds;
            let of_profile = lines.profile.spec().quotas.min_reconcile_interval_seconds;
            let seconds = own.or(of_profile).filter(|seconds| *seconds > 0)?;
            let line = match own.filter(|_| policy.lines().is_ok()) {
                Some(_) => MIN_RECONCILE_INTERVAL.to_owned(),
                None => format!("{MIN_RECONCILE_INTERVAL} of its profile {}", lines.profile),
            };
            Some(ReconcileInterval { seconds, policy: policy.origin().to_string(), line })
        });
        intervals.max_by_key(|interval| interval.seconds)
    }
}

/// What the lines of a policy allow, with the line; `None` for any number.
pub(crate) fn of_lines(lines: &PolicySpec, kind: QuotaKind) -> Option<(u32, String)> {
    let own = kind.of(&lines.quotas).map(|most| (most, kind.line().to_owned()));
    let of_profile = || {
        let most = kind.of(&lines.profile.spec().quotas)?;
        Some((most, format!("{} of its profile {}", kind.line(), lines.profile)))
    };
    own.or_else(of_profile).filter(|(most, _)| *most > 0)
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.policy, self.line)
    }
}

impl fmt::Display for ReconcileInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.policy, self.line)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::{Policy, PolicyRequest, PolicySubject, set::PolicySet};

    fn effective(quotas: &[Value]) -> EffectivePolicy {
        let policies = quotas.iter().enumerate().map(|(number, quotas)| {
            let spec = json!({"namespaces": {"names": ["a"]}, "quotas": quotas});
            Policy::read(format!("p{number}"), &spec)
        });
        PolicySet::new(Profile::Compatible, policies).of(&"a".into(), &BTreeMap::new())
    }

    #[test]
    fn c_53_the_least_quota_counts_and_none_is_none() {
        let fields = ["items", "calls", "memoryMiB", "fetchedMiBPerHour"];
        let of_profile = [100, 32, 2048, 4096];
        let kinds = [QuotaKind::Items, QuotaKind::Calls, QuotaKind::MemoryMib, QuotaKind::FetchedMibPerHour];
        for ((kind, field), of_profile) in kinds.into_iter().zip(fields).zip(of_profile) {
            let quota = |specs: &[Value]| effective(specs).quota(kind).map(|quota| (quota.most, quota.to_string()));
            let line = format!("line spec.quotas.{field}");
            assert_eq!(quota(&[json!({field: 7})]), Some((7, format!("NamespacePolicy p0, {line}"))));
            let told = format!("NamespacePolicy p0, {line} of its profile restricted");
            assert_eq!(quota(&[json!({})]), Some((of_profile, told)));
            assert_eq!(quota(&[json!({field: 0})]), None);
            let told = format!("NamespacePolicy p1, {line}");
            assert_eq!(quota(&[json!({field: 7}), json!({field: 3}), json!({field: 5})]), Some((3, told)));
            let default = PolicySet::new(Profile::Compatible, []).of(&"a".into(), &BTreeMap::new());
            assert_eq!(default.quota(kind), None);
        }
    }

    #[test]
    fn c_184_the_longest_interval_counts_and_a_policy_that_cannot_be_used_says_that_of_restricted() {
        let interval = |specs: &[Value]| {
            effective(specs).min_reconcile_interval().map(|interval| (interval.seconds, interval.to_string()))
        };
        let line = "line spec.quotas.minReconcileIntervalSeconds";
        let of_profile = |name| (60, format!("NamespacePolicy {name}, {line} of its profile restricted"));
        let own = |seconds: u32| json!({"minReconcileIntervalSeconds": seconds});
        assert_eq!(interval(&[json!({})]), Some(of_profile("p0")));
        assert_eq!(interval(&[own(0)]), None);
        assert_eq!(interval(&[own(5)]), Some((5, format!("NamespacePolicy p0, {line}"))));
        assert_eq!(interval(&[own(5), own(90), own(7)]), Some((90, format!("NamespacePolicy p1, {line}"))));
        assert_eq!(interval(&[own(5), json!("none")]), Some(of_profile("p1")));
        let default = |profile| PolicySet::new(profile, []).of(&"a".into(), &BTreeMap::new()).min_reconcile_interval();
        assert_eq!(default(Profile::Compatible), None);
        assert_eq!(default(Profile::Restricted).map(|interval| interval.seconds), Some(60));
    }

    #[test]
    fn c_53_a_component_that_may_take_more_memory_than_the_quota_is_refused() {
        let check = |quotas: &[Value], mib| {
            let request = PolicyRequest::PluginMemory { plugin: "helm", mib };
            effective(quotas).check(PolicySubject::Item("x/y"), request).err().map(|violation| violation.to_string())
        };
        assert_eq!(check(&[json!({"memoryMiB": 256})], 256), None);
        assert_eq!(check(&[json!({"memoryMiB": 0})], u64::MAX), None);
        assert_eq!(
            check(&[json!({"memoryMiB": 300}), json!({"memoryMiB": 255})], 256).unwrap(),
            "a call of the plugin helm, which may take 256 MiB of memory, is refused by NamespacePolicy p1, line \
             spec.quotas.memoryMiB; leave it out, or have an administrator set memoryMiB: 256 there"
        );
        let of_profile = check(&[json!({})], 2049).unwrap();
        assert!(of_profile.contains("line spec.quotas.memoryMiB of its profile restricted; "), "{of_profile}");
    }
}
