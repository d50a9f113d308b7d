//! What a status says of drift: bounded, without values, the same for the same state.

use std::collections::BTreeMap;

use orangery_api::deploy_item::{DriftStatus, DriftedObject};
use orangery_apply::{DriftFinding, DriftedSince};
use orangery_core::{condition::DriftReport, error::cut, masking::Masker};
use orangery_proposal::{ClusterRef, inventory::LocatedObject, overlay::Drift};

/// The most objects that a status names.
const MOST_OBJECTS: usize = 16;

/// The most fields of an object that a status names.
const MOST_FIELDS: usize = 8;

/// The most bytes of a field's JSON pointer that a status or a message shows.
const LONGEST_POINTER: usize = 256;

/// Objects that a sentence names.
const NAMED: usize = 5;

/// After so many corrections in a row somebody else is at work.
const FOUGHT: u32 = 3;

/// `status.drift`; `None` where there is none.
pub(super) fn status(drifted: &BTreeMap<LocatedObject, DriftedSince>, masker: &Masker) -> Option<DriftStatus> {
    let objects = drifted.iter().take(MOST_OBJECTS);
    let objects = objects.map(|(located, drifted)| object(located, &drifted.finding, MOST_FIELDS)).collect();
    let count = u32::try_from(drifted.len()).unwrap_or(u32::MAX);
    (count > 0).then(|| DriftStatus { count, objects: masked_objects(objects, masker) })
}

/// One object, with so many of its fields.
pub(super) fn object(located: &LocatedObject, finding: &DriftFinding, most: usize) -> DriftedObject {
    let (what, fields): (&str, &[Drift]) = match finding {
        DriftFinding::AsWritten => ("AsWritten", &[]),
        DriftFinding::Missing => ("Missing", &[]),
        DriftFinding::BeingDeleted => ("BeingDeleted", &[]),
        DriftFinding::TakenOver(_) => ("TakenOver", &[]),
        DriftFinding::Different(fields) => ("Different", fields),
    };
    DriftedObject {
        cluster: (located.on != ClusterRef::Target).then(|| located.on.to_string()),
        api_version: located.key.api_version.clone(),
        kind: located.key.kind.clone(),
        namespace: located.key.namespace.clone(),
        name: located.key.name.clone(),
        what: what.to_owned(),
        fields: fields.iter().take(most).map(|one| cut(one.pointer().to_owned(), LONGEST_POINTER)).collect(),
        more_fields: u32::try_from(fields.len().saturating_sub(most)).unwrap_or(u32::MAX),
    }
}

/// What the condition says.
pub(super) fn condition(drifted: &BTreeMap<LocatedObject, DriftedSince>) -> DriftReport {
    let refused = |one: &DriftedSince| one.refused.is_some() || one.corrected >= FOUGHT;
    if drifted.is_empty() {
        DriftReport::None
    } else if drifted.values().any(refused) {
        let not: Vec<String> = drifted.iter().filter(|(_, one)| refused(one)).map(not_corrected).collect();
        DriftReport::NotCorrected(list(&not))
    } else {
        let found: Vec<String> = drifted.iter().map(|(located, one)| words(located, &one.finding)).collect();
        DriftReport::Found(list(&found))
    }
}

/// Some of many, in a sentence.
pub(super) fn list(all: &[String]) -> String {
    listed(all, all.len(), "; ")
}

fn listed(some: &[String], count: usize, between: &str) -> String {
    let named = some.iter().take(NAMED).cloned().collect::<Vec<_>>().join(between);
    let more = count.saturating_sub(NAMED);
    if more == 0 { named } else { format!("{named}{between}and {more} more") }
}

/// A report that shows nothing secret.
pub(super) fn masked(report: DriftReport, masker: &Masker) -> DriftReport {
    let mask = |text: String| masker.mask(&text).into_owned();
    match report {
        DriftReport::Unwatched | DriftReport::None => report,
        DriftReport::Found(what) => DriftReport::Found(mask(what)),
        DriftReport::NotCorrected(what) => DriftReport::NotCorrected(mask(what)),
        DriftReport::Unknown(why) => DriftReport::Unknown(mask(why)),
    }
}

/// The same objects with fields that show nothing secret: a name in a map may be anything that somebody wrote.
pub(super) fn masked_objects(mut objects: Vec<DriftedObject>, masker: &Masker) -> Vec<DriftedObject> {
    for field in objects.iter_mut().flat_map(|object| &mut object.fields) {
        *field = masker.mask(field).into_owned();
    }
    objects
}

/// An object and what became of it, in words.
pub(super) fn words(located: &LocatedObject, finding: &DriftFinding) -> String {
    let key = &located.key;
    match finding {
        DriftFinding::AsWritten => format!("{key} is as it was written"),
        DriftFinding::Missing => format!("{key} is missing"),
        DriftFinding::BeingDeleted => format!("{key} is being deleted"),
        DriftFinding::TakenOver(why) => format!("{key} {why}"),
        DriftFinding::Different(fields) => {
            let told =
                fields.iter().take(NAMED + 1).map(|one| cut(one.to_string(), LONGEST_POINTER)).collect::<Vec<_>>();
            format!("{key}: {}", listed(&told, fields.len(), ", "))
        }
    }
}

fn not_corrected((located, one): (&LocatedObject, &DriftedSince)) -> String {
    let what = words(located, &one.finding);
    match (&one.refused, &one.manager) {
        (Some(why), _) => format!("{what}, and it cannot be written again: {why}"),
        (None, Some(manager)) => format!(
            "{what}, though it was written again {} times: the field manager {manager:?} changes it back; have it leave \
             these fields, or name it in spec.drift.ignore",
            one.corrected
        ),
        (None, None) => format!("{what}, though it was written again {} times", one.corrected),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use orangery_proposal::ObjectKey;

    use super::*;

    fn located(name: &str) -> LocatedObject {
        let (namespace, name) = (Some("n".into()), name.into());
        let key = ObjectKey { api_version: "v1".into(), kind: "ConfigMap".into(), namespace, name };
        LocatedObject { on: ClusterRef::Target, key }
    }

    fn different(count: usize) -> DriftFinding {
        DriftFinding::Different((0..count).map(|number| Drift::Different(format!("/data/{number}"))).collect())
    }

    fn since(finding: DriftFinding) -> DriftedSince {
        DriftedSince { finding, since: Timestamp::UNIX_EPOCH, manager: None, refused: None, corrected: 0 }
    }

    fn drifted(all: Vec<(&str, DriftedSince)>) -> BTreeMap<LocatedObject, DriftedSince> {
        all.into_iter().map(|(name, one)| (located(name), one)).collect()
    }

    #[test]
    fn limits_drift_a_status_names_some_objects_and_fields_and_says_how_many_there_are() {
        let masker = Masker::default();
        let many: BTreeMap<_, _> =
            (0..100).map(|number| (located(&format!("x{number:03}")), since(different(20)))).collect();
        let told = status(&many, &masker).unwrap();
        let names: Vec<String> = told.objects.iter().map(|object| object.name.to_string()).collect();
        let expected: Vec<String> = (0..MOST_OBJECTS).map(|number| format!("x{number:03}")).collect();
        assert_eq!((told.count, names), (100, expected));
        let fields: Vec<String> = (0..MOST_FIELDS).map(|number| format!("/data/{number}")).collect();
        assert!(told.objects.iter().all(|object| object.fields == fields && object.more_fields == 12));
        let exact = status(&drifted(vec![("a", since(different(MOST_FIELDS)))]), &masker).unwrap();
        assert_eq!((exact.objects[0].fields.len(), exact.objects[0].more_fields), (MOST_FIELDS, 0));
        assert_eq!(status(&BTreeMap::new(), &masker), None);
    }

    #[test]
    fn limits_drift_a_long_pointer_is_cut_and_a_sentence_names_five() {
        let long = Drift::Missing(format!("/data/{}", "x".repeat(10_000)));
        let one = drifted(vec![("a", since(DriftFinding::Different(vec![long; 1_000])))]);
        let told = status(&one, &Masker::default()).unwrap();
        assert!(told.objects[0].fields.iter().all(|field| field.len() < LONGEST_POINTER + 32), "{told:?}");
        let DriftReport::Found(message) = condition(&one) else { panic!("it is found") };
        assert!(message.len() < 5 * (LONGEST_POINTER + 32) + 64, "{}", message.len());
        assert!(message.ends_with(", and 995 more"), "{message}");
        let many: BTreeMap<_, _> = (0..9).map(|number| (located(&number.to_string()), since(different(1)))).collect();
        let DriftReport::Found(message) = condition(&many) else { panic!("it is found") };
        assert_eq!((message.matches("ConfigMap").count(), message.ends_with("; and 4 more")), (NAMED, true));
    }

    #[test]
    fn c_56_every_finding_is_a_word_in_the_status_and_a_sentence_in_the_condition() {
        let fields = DriftFinding::Different(vec![Drift::Missing("/a".into()), Drift::Different("/b".into())]);
        let taken = DriftFinding::TakenOver("belongs to DeployItem n/x now".to_owned());
        let all = [fields, DriftFinding::Missing, DriftFinding::BeingDeleted, taken, DriftFinding::AsWritten];
        let told: Vec<String> = all
            .iter()
            .map(|finding| format!("{}: {}", object(&located("a"), finding, 8).what, words(&located("a"), finding)))
            .collect();
        assert_eq!(
            told,
            [
                "Different: ConfigMap n/a: /a is missing, /b is different",
                "Missing: ConfigMap n/a is missing",
                "BeingDeleted: ConfigMap n/a is being deleted",
                "TakenOver: ConfigMap n/a belongs to DeployItem n/x now",
                "AsWritten: ConfigMap n/a is as it was written",
            ]
        );
        let there = LocatedObject { on: ClusterRef::Host, ..located("a") };
        assert_eq!(object(&located("a"), &DriftFinding::Missing, 8).cluster, None);
        assert_eq!(object(&there, &DriftFinding::Missing, 8).cluster, Some(ClusterRef::Host.to_string()));
    }

    #[test]
    fn c_60_what_cannot_be_corrected_says_why_and_names_the_field_manager() {
        let refused = DriftedSince { refused: Some("no".to_owned()), ..since(DriftFinding::Missing) };
        let fought = DriftedSince { corrected: FOUGHT, manager: Some("x\"y".to_owned()), ..since(different(1)) };
        let unnamed = DriftedSince { corrected: FOUGHT, ..since(different(1)) };
        let twice = DriftedSince { corrected: FOUGHT - 1, ..since(different(1)) };
        let told = |one: DriftedSince| condition(&drifted(vec![("a", one), ("b", since(DriftFinding::Missing))]));
        let not = |why: &str| DriftReport::NotCorrected(format!("ConfigMap n/a{why}"));
        assert_eq!(told(refused), not(" is missing, and it cannot be written again: no"));
        assert_eq!(
            told(fought),
            not(
                ": /data/0 is different, though it was written again 3 times: the field manager \"x\\\"y\" changes it back; \
                 have it leave these fields, or name it in spec.drift.ignore"
            )
        );
        assert_eq!(told(unnamed), not(": /data/0 is different, though it was written again 3 times"));
        let both = "ConfigMap n/a: /data/0 is different; ConfigMap n/b is missing";
        assert_eq!(told(twice), DriftReport::Found(both.to_owned()));
        assert_eq!(condition(&BTreeMap::new()), DriftReport::None);
    }
}
