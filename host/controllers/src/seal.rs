//! What the host keeps in the status of an item is authenticated: others may write there, and nothing is carried out that
//! they have made up (C-37). An HMAC under a key of the operator, over all that counts, bound to the item, its job and a
//! number that grows with each write.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use data_encoding::BASE64;
use orangery_api::{
    annotation, deploy_item::DeployItem, installation::Installation, marks::Marks as _, plan::PlanContent,
};
use orangery_core::digest::sha256;
use serde::{Serialize, de::DeserializeOwned};

use crate::{controller_context::ControllerContext, encryption::EncryptionKey, object::uid_of, seed::SealKey};

/// The numbers of the newest seals that this process has seen, by the uid of the item, and by that of an Installation with the name
/// of a Secret: an older one is no state to go on with, though it was once written by the operator.
#[derive(Default)]
pub(crate) struct NewestSeals {
    /// Held for one look-up or one change.
    by_uid: Mutex<BTreeMap<String, u64>>,
}

impl NewestSeals {
    /// Takes a number in that was found or written. Whether none is known that is newer.
    fn take(&self, uid: &str, number: u64) -> bool {
        let mut by_uid = self.by_uid.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = by_uid.entry(uid.to_owned()).or_insert(number);
        let is_newest = number >= *newest;
        *newest = number.max(*newest);
        is_newest
    }

    fn newest(&self, uid: &str) -> u64 {
        self.by_uid.lock().unwrap_or_else(PoisonError::into_inner).get(uid).copied().unwrap_or_default()
    }

    /// The object is gone, and what lies beside it.
    pub(crate) fn forget(&self, uid: &str) {
        let mut by_uid = self.by_uid.lock().unwrap_or_else(PoisonError::into_inner);
        by_uid.remove(uid);
        let beside = format!("{uid}/");
        while let Some(place) = by_uid.range(beside.clone()..).next().map(|(place, _)| place.clone()) {
            if !place.starts_with(&beside) {
                break;
            }
            by_uid.remove(&place);
        }
    }
}

/// Seals the state of one item, and says whether a state that is found is sealed.
#[derive(Clone, Copy)]
pub(crate) struct Sealer<'a> {
    key: &'a SealKey,
    encryption: &'a EncryptionKey,
    newest: &'a NewestSeals,
    uid: &'a str,
    /// The mark of a signed origin that the item has (C-75).
    origin: Option<&'a str>,
}

/// Why a state that is found is not gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealError {
    /// This operator has not written it.
    Unsealed,
    /// This operator has written a newer one since.
    Replayed,
}

impl SealError {
    /// What is told about an item.
    pub(crate) fn note(self) -> &'static str {
        match self {
            SealError::Unsealed => {
                "status.providerStatus was not written by this operator: of managedResources only objects that carry the mark \
                 of this item are its own, and nothing else of it counts but clusters for which credentials were kept"
            }
            SealError::Replayed => {
                "status.providerStatus is an older one than this operator has written last: of managedResources only objects \
                 that carry the mark of this item are its own, and nothing else of it counts but clusters for which credentials were \
                 kept"
            }
        }
    }
}

impl<'a> Sealer<'a> {
    /// For an item.
    pub(crate) fn of(host: &'a ControllerContext, item: &'a DeployItem) -> Self {
        let uid = uid_of(item);
        let origin = item.annotation(annotation::SIGNED_ORIGIN);
        Self { key: host.key.seals(), encryption: host.key.encryption(), newest: &host.newest_seals, uid, origin }
    }

    /// The digest of the mark of a signed origin that the item has; `None` where it has none.
    pub(crate) fn origin(self) -> Option<String> {
        self.origin.map(|mark| sha256(mark.as_bytes()))
    }

    /// Encrypts a part of the state that others are not to read (C-85).
    pub(crate) fn encrypt(self, content: &impl Serialize) -> Option<String> {
        Some(self.encryption.encrypt(&self.subject(), &serde_json::to_vec(content).ok()?))
    }

    /// A part of the state that was encrypted.
    pub(crate) fn decrypt<T: DeserializeOwned>(self, encrypted: &str) -> Option<T> {
        serde_json::from_slice(&self.encryption.decrypt(&self.subject(), encrypted)?).ok()
    }

    fn subject(self) -> String {
        format!("DeployItem {}", self.uid)
    }

    /// The number of the next seal.
    pub(crate) fn next_number(self) -> u64 {
        self.newest.newest(self.uid).saturating_add(1)
    }

    /// A seal was written.
    pub(crate) fn written(self, number: u64) {
        self.newest.take(self.uid, number);
    }

    /// The seal of what counts.
    pub(crate) fn seal(self, number: u64, content: &impl Serialize) -> Option<String> {
        let sealed = serde_json::to_vec(&("status", self.uid, number, content)).ok()?;
        Some(BASE64.encode(&self.key.sign(&sealed)))
    }

    /// Holds a seal against what it is said to be of.
    pub(crate) fn verify(self, number: u64, content: &impl Serialize, seal: Option<&str>) -> Result<(), SealError> {
        let tag = seal.and_then(|seal| BASE64.decode(seal.as_bytes()).ok()).ok_or(SealError::Unsealed)?;
        let sealed = serde_json::to_vec(&("status", self.uid, number, content)).map_err(|_| SealError::Unsealed)?;
        if !self.key.verify(&sealed, &tag) {
            return Err(SealError::Unsealed);
        }
        if self.newest.take(self.uid, number) { Ok(()) } else { Err(SealError::Replayed) }
    }
}

impl SealKey {
    /// Seals a Plan: the operator knows by it that nobody else has made it, nor changed anything of it (C-312).
    pub(crate) fn seal_plan(&self, plan: &mut PlanContent) {
        if let Some(sealed) = sealed_plan(plan) {
            plan.seal = BASE64.encode(&self.sign(&sealed));
        }
    }

    /// Whether this operator has made a Plan as it is.
    pub(crate) fn knows(&self, plan: &PlanContent) -> bool {
        let tag = BASE64.decode(plan.seal.as_bytes()).ok();
        tag.zip(sealed_plan(plan)).is_some_and(|(tag, sealed)| self.verify(&sealed, &tag))
    }
}

/// What is sealed of a Plan: all of it.
fn sealed_plan(plan: &PlanContent) -> Option<Vec<u8>> {
    serde_json::to_vec(&("plan", PlanContent { seal: String::new(), ..plan.clone() })).ok()
}

/// Seals the state of templates that lies in one Secret of an Installation (C-202).
pub(crate) struct TemplateStateSealer<'a> {
    key: &'a SealKey,
    newest: &'a NewestSeals,
    /// The uid of the Installation, and the name of the Secret.
    place: String,
}

/// A seal as it stands in an annotation.
pub(crate) struct WrittenSeal {
    number: u64,
    /// The number and the tag.
    pub(crate) text: String,
}

impl<'a> TemplateStateSealer<'a> {
    /// For a Secret of an Installation.
    pub(crate) fn of(host: &'a ControllerContext, installation: &Installation, secret: &str) -> Self {
        Self::new((host.key.seals(), &host.newest_seals), uid_of(installation), secret)
    }

    fn new((key, newest): (&'a SealKey, &'a NewestSeals), uid: &str, secret: &str) -> Self {
        Self { key, newest, place: format!("{uid}/{secret}") }
    }

    /// The seal of the next content.
    pub(crate) fn seal(&self, content: &[u8]) -> WrittenSeal {
        let number = self.newest.newest(&self.place).saturating_add(1);
        let tag = BASE64.encode(&self.key.sign(&self.sealed(number, content)));
        WrittenSeal { number, text: format!("{number}:{tag}") }
    }

    /// A seal was written.
    pub(crate) fn written(&self, seal: &WrittenSeal) {
        self.newest.take(&self.place, seal.number);
    }

    /// Holds a content against the annotation beside it.
    pub(crate) fn verify(&self, content: &[u8], seal: Option<&str>) -> Result<(), SealError> {
        let parts = seal.and_then(|seal| seal.split_once(':'));
        let number_and_tag =
            parts.and_then(|(number, tag)| Some((number.parse().ok()?, BASE64.decode(tag.as_bytes()).ok()?)));
        let (number, tag) = number_and_tag.ok_or(SealError::Unsealed)?;
        if !self.key.verify(&self.sealed(number, content), &tag) {
            return Err(SealError::Unsealed);
        }
        if self.newest.take(&self.place, number) { Ok(()) } else { Err(SealError::Replayed) }
    }

    fn sealed(&self, number: u64, content: &[u8]) -> Vec<u8> {
        format!("template state {} {number} {}", self.place, sha256(content)).into_bytes()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::seed::HostKey;

    /// What seals are made with in tests.
    pub(crate) struct Bench(HostKey, NewestSeals);

    impl Bench {
        pub(crate) fn new(key: u8) -> Self {
            Self(HostKey::new(&[key; 32]), NewestSeals::default())
        }

        fn of_state(&self, uid: &str, secret: &str) -> TemplateStateSealer<'_> {
            TemplateStateSealer::new((self.0.seals(), &self.1), uid, secret)
        }

        pub(crate) fn sealer<'a>(&'a self, uid: &'a str) -> Sealer<'a> {
            self.sealer_for(uid, None)
        }

        /// The same for an item with the mark of a signed origin.
        pub(crate) fn sealer_for<'a>(&'a self, uid: &'a str, origin: Option<&'a str>) -> Sealer<'a> {
            Sealer { key: self.0.seals(), encryption: self.0.encryption(), newest: &self.1, uid, origin }
        }
    }

    #[test]
    fn c_37_a_seal_is_good_for_one_item_one_content_one_number_and_one_operator() {
        let (own, other) = (Bench::new(1), Bench::new(2));
        let seal = own.sealer("u").seal(1, &"content").unwrap();
        assert_eq!(own.sealer("u").verify(1, &"content", Some(&seal)), Ok(()));
        assert_eq!(own.sealer("v").verify(1, &"content", Some(&seal)), Err(SealError::Unsealed), "another item's");
        assert_eq!(own.sealer("u").verify(1, &"other", Some(&seal)), Err(SealError::Unsealed));
        assert_eq!(own.sealer("u").verify(2, &"content", Some(&seal)), Err(SealError::Unsealed));
        assert_eq!(
            other.sealer("u").verify(1, &"content", Some(&seal)),
            Err(SealError::Unsealed),
            "another operator's"
        );
        assert_eq!(own.sealer("u").verify(1, &"content", Some("none")), Err(SealError::Unsealed));
        assert_eq!(own.sealer("u").verify(1, &"content", None), Err(SealError::Unsealed));
    }

    fn verified(
        bench: &Bench,
        (uid, secret): (&str, &str),
        content: &[u8],
        seal: Option<&str>,
    ) -> Result<(), SealError> {
        bench.of_state(uid, secret).verify(content, seal)
    }

    #[test]
    fn c_202_the_seal_of_a_state_is_good_for_one_installation_one_secret_one_content_and_one_operator() {
        let (own, other) = (Bench::new(1), Bench::new(2));
        let seal = own.of_state("u", "s").seal(b"content").text;
        assert_eq!(verified(&own, ("u", "s"), b"content", Some(&seal)), Ok(()));
        let unsealed = Err(SealError::Unsealed);
        assert_eq!(verified(&own, ("v", "s"), b"content", Some(&seal)), unsealed, "another Installation's");
        assert_eq!(verified(&own, ("u", "t"), b"content", Some(&seal)), unsealed, "another state's");
        assert_eq!(verified(&own, ("u", "s"), b"other", Some(&seal)), unsealed);
        assert_eq!(verified(&own, ("u", "s"), b"content", Some(&seal.replacen('1', "2", 1))), unsealed);
        assert_eq!(verified(&other, ("u", "s"), b"content", Some(&seal)), unsealed, "another operator's");
        for text in [None, Some(""), Some("1:"), Some("none"), Some("1:!")] {
            assert_eq!(verified(&own, ("u", "s"), b"content", text), unsealed, "{text:?}");
        }
    }

    #[test]
    fn c_202_a_state_that_is_older_than_another_one_is_not_good_until_its_installation_is_gone() {
        let bench = Bench::new(1);
        let state = bench.of_state("u", "s");
        let first = state.seal(b"first");
        state.written(&first);
        let second = state.seal(b"second");
        assert_eq!(state.verify(b"first", Some(&first.text)), Ok(()), "the second one was not written yet");
        state.written(&second);
        assert_eq!(state.verify(b"first", Some(&first.text)), Err(SealError::Replayed));
        assert_eq!(state.verify(b"second", Some(&second.text)), Ok(()));
        bench.of_state("u2", "s").written(&first);
        bench.1.forget("u");
        assert_eq!(bench.1.by_uid.lock().unwrap().keys().collect::<Vec<_>>(), ["u2/s"]);
    }

    #[test]
    fn c_37_a_seal_that_is_older_than_another_one_is_not_good_any_more() {
        let bench = Bench::new(1);
        let sealer = bench.sealer("u");
        let [first, second] = [1, 2].map(|number| sealer.seal(number, &"content").unwrap());
        assert_eq!(sealer.verify(2, &"content", Some(&second)), Ok(()));
        assert_eq!(sealer.verify(1, &"content", Some(&first)), Err(SealError::Replayed));
        assert_eq!(sealer.verify(2, &"content", Some(&second)), Ok(()));
        assert_eq!(sealer.next_number(), 3);
        sealer.written(3);
        assert_eq!(sealer.verify(2, &"content", Some(&second)), Err(SealError::Replayed));
    }
}
