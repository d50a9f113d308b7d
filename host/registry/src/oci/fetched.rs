//! How much each namespace has had fetched lately, against its quota (C-54).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use orangery_core::name::Namespace;
use orangery_ocm::FetchQuota;
use tokio::time::Instant;

use super::refusal::ExchangeRefusal;

/// For how long a quota counts, from the first byte; then a namespace begins anew.
const PERIOD: Duration = Duration::from_secs(60 * 60);

/// What came for the namespaces that have a quota.
#[derive(Default)]
pub(super) struct FetchedBytes {
    /// Protects the sums; held for one look-up.
    fetched: Mutex<HashMap<Namespace, FetchedSum>>,
}

struct FetchedSum {
    since: Instant,
    bytes: u64,
}

/// Counts what one answer brings.
pub(super) struct FetchMeter {
    sums: Arc<FetchedBytes>,
    quota: FetchQuota,
}

impl FetchedBytes {
    /// A meter for an answer that has so many bytes, as far as it says; a refusal where they are too many.
    pub(super) fn meter(
        self: &Arc<Self>,
        quota: &FetchQuota,
        expected: Option<u64>,
    ) -> Result<FetchMeter, ExchangeRefusal> {
        let meter = FetchMeter { sums: Arc::clone(self), quota: quota.clone() };
        meter.count_within(expected.unwrap_or_default(), false)?;
        Ok(meter)
    }
}

impl FetchMeter {
    /// So many bytes came; a refusal where they are more than are left.
    pub(super) fn count(&self, bytes: u64) -> Result<(), ExchangeRefusal> {
        self.count_within(bytes, true)
    }

    /// Whether so many bytes are left, and takes them where they are to be kept.
    fn count_within(&self, bytes: u64, kept: bool) -> Result<(), ExchangeRefusal> {
        let FetchQuota { namespace, most_mib, line } = &self.quota;
        let now = Instant::now();
        let mut fetched = self.sums.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        fetched.retain(|_, sum| now.duration_since(sum.since) < PERIOD);
        let sum = fetched.entry(namespace.clone()).or_insert(FetchedSum { since: now, bytes: 0 });
        let after = sum.bytes.saturating_add(bytes);
        if after > u64::from(*most_mib) << 20 {
            return Err(ExchangeRefusal::Quota {
                namespace: namespace.clone(),
                most_mib: *most_mib,
                line: line.clone(),
                left: PERIOD.saturating_sub(now.duration_since(sum.since)),
            });
        }
        if kept {
            sum.bytes = after;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(namespace: &str) -> FetchQuota {
        FetchQuota { namespace: namespace.into(), most_mib: 1, line: "NamespacePolicy p, line l".to_owned() }
    }

    const MIB: u64 = 1 << 20;

    #[tokio::test(start_paused = true)]
    async fn c_54_a_namespace_has_its_quota_once_an_hour_and_no_other_pays_for_it() {
        let sums = Arc::new(FetchedBytes::default());
        let refused = |answer: Result<(), ExchangeRefusal>| answer.err().map(|refusal| refusal.to_string());
        let meter = sums.meter(&quota("a"), None).ok().unwrap();
        assert_eq!(refused(meter.count(MIB)), None);
        tokio::time::advance(Duration::from_secs(600)).await;
        let sentence = "namespace a would have more than 1 MiB fetched within an hour, which NamespacePolicy p, line l refuses; ask \
                        again in 3000 s, or have an administrator allow more there";
        assert_eq!(refused(meter.count(1)).as_deref(), Some(sentence));
        assert_eq!(
            sums.meter(&quota("a"), Some(1)).err().map(|refusal| refusal.to_string()).as_deref(),
            Some(sentence)
        );
        assert_eq!(refused(sums.meter(&quota("b"), Some(MIB)).ok().unwrap().count(MIB)), None);
        tokio::time::advance(Duration::from_secs(3000)).await;
        assert_eq!(refused(meter.count(MIB)), None);
        tokio::time::advance(Duration::from_secs(600)).await;
        assert_eq!(refused(meter.count(0)), None);
        assert_eq!(sums.fetched.lock().unwrap().len(), 1, "sums that count no more are forgotten");
    }

    #[tokio::test]
    async fn c_54_what_is_announced_takes_nothing_before_it_comes() {
        let sums = Arc::new(FetchedBytes::default());
        assert!(sums.meter(&quota("a"), Some(MIB + 1)).is_err());
        let (first, second) = (sums.meter(&quota("a"), Some(MIB)), sums.meter(&quota("a"), Some(MIB)));
        assert!(second.ok().unwrap().count(MIB).is_ok());
        assert!(first.ok().unwrap().count(1).is_err());
    }
}
