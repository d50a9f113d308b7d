//! Namespaces that have computed for long lately, and give way to others.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::Tenant;

/// What a namespace may compute beyond its share before it gives way.
const TOLERATED: Duration = Duration::from_millis(100);
/// The most that is held against it, so that it is forgotten in eight seconds.
const MOST_OWED: Duration = Duration::from_secs(2);
/// Of each second, so much computing is nobody's debt: one in so many.
const SHARE: u32 = 4;
/// How long a namespace counts as one that others give way to.
const LATELY: Duration = Duration::from_secs(1);

/// What tenants have computed beyond their share.
#[derive(Default)]
pub(crate) struct Debts {
    by_tenant: BTreeMap<Tenant, Debt>,
}

struct Debt {
    owed: Duration,
    /// When it computed last.
    at: Instant,
}

impl Debt {
    fn owed_at(&self, now: Instant) -> Duration {
        self.owed.saturating_sub(now.saturating_duration_since(self.at) / SHARE)
    }
}

impl Debts {
    /// A tenant has computed for so long until now.
    pub(crate) fn computed(&mut self, tenant: &Tenant, took: Duration, now: Instant) {
        let owed = self.owed_by(tenant, now).saturating_add(took).min(MOST_OWED);
        self.by_tenant.insert(tenant.clone(), Debt { owed, at: now });
        self.by_tenant
            .retain(|_, debt| !debt.owed_at(now).is_zero() || now.saturating_duration_since(debt.at) < LATELY);
    }

    /// Whether a tenant gives way: it has computed for long, and another one that computes as well has done so for less than
    /// half of that.
    pub(crate) fn gives_way(&self, tenant: &Tenant, now: Instant) -> bool {
        let owed = self.owed_by(tenant, now);
        let computes = |debt: &Debt| now.saturating_duration_since(debt.at) < LATELY;
        owed > TOLERATED
            && self
                .by_tenant
                .iter()
                .any(|(other, debt)| other != tenant && computes(debt) && debt.owed_at(now) < owed / 2)
    }

    fn owed_by(&self, tenant: &Tenant, now: Instant) -> Duration {
        self.by_tenant.get(tenant).map_or(Duration::ZERO, |debt| debt.owed_at(now))
    }
}

#[cfg(test)]
mod tests {
    use orangery_core::name::Namespace;

    use super::*;

    #[test]
    fn c_96_a_namespace_that_has_computed_for_long_gives_way_to_one_that_computes_little() {
        let begin = Instant::now();
        let at = |milliseconds| begin + Duration::from_millis(milliseconds);
        let (long, short) = (Some(Namespace::from_static("long")), Some(Namespace::from_static("short")));
        let mut debts = Debts::default();
        debts.computed(&long, Duration::from_millis(101), at(101));
        assert!(!debts.gives_way(&long, at(101)), "to nobody");
        debts.computed(&short, Duration::from_millis(5), at(102));
        assert_eq!([&long, &short].map(|tenant| debts.gives_way(tenant, at(102))), [true, false]);
        assert!(!debts.gives_way(&long, at(110)), "what is tolerated is not held against it");
        debts.computed(&long, Duration::from_secs(60), at(60_000));
        assert!(!debts.gives_way(&long, at(60_000)), "nobody else computes");
        debts.computed(&short, Duration::from_millis(5), at(60_001));
        assert!(debts.gives_way(&long, at(61_000)) && !debts.gives_way(&long, at(61_001)), "as long as it computes");
        debts.computed(&long, Duration::ZERO, at(67_000));
        debts.computed(&short, Duration::from_millis(800), at(67_000));
        assert!(
            !debts.gives_way(&long, at(67_000)) && debts.gives_way(&short, at(67_000)),
            "the debt is smaller by now"
        );
        debts.computed(&None, Duration::ZERO, at(200_000));
        assert_eq!(debts.by_tenant.len(), 1, "nothing is kept of those that have gone");
    }
}
