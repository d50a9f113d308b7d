//! Which cluster it is, and whether it is the one of before (C-35, C-321).

use orangery_cluster::{Cluster, Error};

/// By what a cluster is known again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterIdentity {
    /// The uid of its Namespace `kube-system`.
    Uid(String),
    /// The address of its server, where that Namespace may not be read: another address may be another cluster, or another name
    /// of the same.
    Address(String),
}

/// Whether a cluster is the one of before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sameness<'a> {
    /// It is.
    Same,
    /// It is another one; the one of before has this uid.
    Other(&'a str),
    /// That cannot be told.
    Unknown,
}

/// A cluster as it answers now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachedCluster {
    /// The uid of its Namespace `kube-system`; `None` where the credentials may not get it.
    pub uid: Option<String>,
    /// The address of its server.
    pub address: String,
}

impl ReachedCluster {
    /// # Errors
    /// The cluster cannot be asked.
    pub async fn of(cluster: &Cluster) -> Result<Self, Error> {
        Ok(Self { uid: cluster.uid().await?, address: cluster.address().to_owned() })
    }

    /// By what it is known again.
    pub fn identity(&self) -> ClusterIdentity {
        match &self.uid {
            Some(uid) => ClusterIdentity::Uid(uid.clone()),
            None => ClusterIdentity::Address(self.address.clone()),
        }
    }
}

impl ClusterIdentity {
    /// The uid, where it is known.
    pub fn uid(&self) -> Option<&str> {
        match self {
            Self::Uid(uid) => Some(uid),
            Self::Address(_) => None,
        }
    }

    /// The address, where the uid is not known.
    pub fn address(&self) -> Option<&str> {
        match self {
            Self::Uid(_) => None,
            Self::Address(address) => Some(address),
        }
    }

    /// Whether a cluster that answers now is the one that was known by this.
    pub fn against(&self, now: &ReachedCluster) -> Sameness<'_> {
        self.compare(now.uid.as_deref(), Some(&now.address))
    }

    /// Whether what is known of two clusters is of one.
    pub fn beside(&self, other: &Self) -> Sameness<'_> {
        self.compare(other.uid(), other.address())
    }

    /// An address is no identity: that it is another one proves nothing.
    fn compare(&self, uid: Option<&str>, address: Option<&str>) -> Sameness<'_> {
        match (self, uid) {
            (Self::Uid(before), Some(now)) if before == now => Sameness::Same,
            (Self::Uid(before), Some(_)) => Sameness::Other(before),
            (Self::Address(before), _) if address == Some(before) => Sameness::Same,
            (Self::Uid(_), None) | (Self::Address(_), _) => Sameness::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_35_c_321_a_cluster_is_the_one_of_before_by_its_uid_or_by_the_address_in_its_place() {
        let (uid, address) =
            (|of: &str| ClusterIdentity::Uid(of.into()), |of: &str| ClusterIdentity::Address(of.into()));
        let reached =
            |uid: Option<&str>, address: &str| ReachedCluster { uid: uid.map(Into::into), address: address.into() };
        for (before, now, expected) in [
            (uid("u"), reached(Some("u"), "a"), Sameness::Same),
            (uid("u"), reached(Some("v"), "a"), Sameness::Other("u")),
            (uid("u"), reached(None, "a"), Sameness::Unknown),
            (address("a"), reached(None, "a"), Sameness::Same),
            (address("a"), reached(Some("u"), "a"), Sameness::Same),
            (address("a"), reached(None, "b"), Sameness::Unknown),
            (address("a"), reached(Some("a"), "b"), Sameness::Unknown),
        ] {
            assert_eq!(before.against(&now), expected, "{before:?} {now:?}");
        }
        for (one, other, expected) in [
            (uid("u"), uid("u"), Sameness::Same),
            (uid("u"), uid("v"), Sameness::Other("u")),
            (address("a"), address("a"), Sameness::Same),
            (address("a"), address("b"), Sameness::Unknown),
            (uid("a"), address("a"), Sameness::Unknown),
            (address("a"), uid("a"), Sameness::Unknown),
        ] {
            assert_eq!(one.beside(&other), expected, "{one:?} {other:?}");
        }
        assert_eq!((reached(Some("u"), "a").identity(), reached(None, "a").identity()), (uid("u"), address("a")));
    }
}
