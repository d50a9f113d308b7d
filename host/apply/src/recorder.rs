//! What a job sends to clusters, one entry for each write, for its record (C-331). It is noted before it is sent: a write whose answer
//! never came stands there as one of which nobody knows whether it was done.

use std::sync::{Mutex, MutexGuard, PoisonError};

use orangery_cluster::{Deletion, Error};
use orangery_proposal::{ClusterRef, ObjectKey, overlay::without_server_owned};
use serde_json::Value;

/// The most writes of one call of a controller that are listed; those beyond are counted (C-335).
pub const MOST_SENT_WRITES: usize = 16_384;

/// How an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteVerb {
    /// POST.
    Create,
    /// PATCH: server-side apply.
    Apply,
    /// PUT.
    Replace,
    /// PATCH: a merge patch.
    Patch,
    /// DELETE.
    Delete,
}

/// An object before or after a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedObject {
    /// It was not read, or the answer never came.
    Unknown,
    /// It is not there.
    Absent,
    /// It is on its way out.
    Going,
    /// What it had but for what the server alone writes, as a digest.
    Digest(String),
}

/// A write, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentWrite {
    /// Which cluster, as the item calls it.
    pub on: ClusterRef,
    /// The uid of a cluster that the item had objects in before.
    pub former: Option<String>,
    /// Which object.
    pub key: ObjectKey,
    /// How.
    pub verb: WriteVerb,
    /// Before it.
    pub before: RecordedObject,
    /// After it.
    pub after: RecordedObject,
    /// Whether the server has answered that it is done.
    pub is_answered: bool,
}

/// Makes the digest of what an object has.
pub type ObjectDigest = Box<dyn Fn(&Value) -> String + Send + Sync>;

/// Notes the writes of one call of a controller.
pub struct WriteRecorder {
    digest: ObjectDigest,
    /// Held for one entry.
    sent: Mutex<SentWrites>,
}

#[derive(Default)]
struct SentWrites {
    next: u64,
    writes: Vec<(u64, SentWrite)>,
    more: u64,
}

/// Where the writes of a job are noted.
#[derive(Clone, Copy)]
pub struct Recorded<'a> {
    /// Where.
    pub by: &'a WriteRecorder,
    /// The uid of the cluster, where it is one that the targets do not name any more.
    pub former: Option<&'a str>,
}

/// The place of a write that was noted.
pub(crate) struct NotedWrite(Option<u64>);

impl WriteRecorder {
    /// `digest` makes the digests of objects: nobody else is to make the same of an object that he guesses.
    pub fn new(digest: ObjectDigest) -> Self {
        Self { digest, sent: Mutex::default() }
    }

    fn sent(&self) -> MutexGuard<'_, SentWrites> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writes since it was asked last, in their order, and how many more there were.
    pub fn take(&self) -> (Vec<SentWrite>, u64) {
        let SentWrites { writes, more, .. } = std::mem::take(&mut *self.sent());
        (writes.into_iter().map(|(_, write)| write).collect(), more)
    }

    fn digest_of(&self, object: &Value) -> RecordedObject {
        let mut object = without_server_owned(object);
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        RecordedObject::Digest((self.digest)(&object))
    }
}

impl Recorded<'_> {
    /// Notes a write that is about to be sent. `before` is the object that was read, where one was.
    pub(crate) fn note(
        &self,
        (on, key): (&ClusterRef, &ObjectKey),
        verb: WriteVerb,
        before: Option<&Value>,
    ) -> NotedWrite {
        let before = match (verb, before) {
            (WriteVerb::Create, _) => RecordedObject::Absent,
            (_, Some(read)) => self.by.digest_of(read),
            (_, None) => RecordedObject::Unknown,
        };
        let (on, key, former) = (on.clone(), key.clone(), self.former.map(str::to_owned));
        let write = SentWrite { on, former, key, verb, before, after: RecordedObject::Unknown, is_answered: false };
        let mut sent = self.by.sent();
        if sent.writes.len() >= MOST_SENT_WRITES {
            sent.more = sent.more.saturating_add(1);
            return NotedWrite(None);
        }
        sent.next = sent.next.saturating_add(1);
        let place = sent.next;
        sent.writes.push((place, write));
        NotedWrite(Some(place))
    }

    /// What became of it. What was certainly not done is not listed.
    pub(crate) fn answered<T: WriteAnswer>(&self, NotedWrite(place): NotedWrite, answer: &Result<T, Error>) {
        let after = match answer {
            Ok(answer) => Some(answer.after(self.by)),
            Err(Error::Unreachable { .. } | Error::Unanswered { .. } | Error::Abandoned { .. }) => None,
            // It was not sent, or the server has said that it did not do it.
            Err(_) => return self.by.sent().writes.retain(|(noted, _)| Some(*noted) != place),
        };
        let Some(after) = after else { return };
        if let Some((_, write)) = self.by.sent().writes.iter_mut().rev().find(|(noted, _)| Some(*noted) == place) {
            write.after = after;
            write.is_answered = true;
        }
    }

    /// An object that was to be deleted was gone already: a call that was cut off may have done it.
    pub(crate) fn found_gone(&self, of: (&ClusterRef, &ObjectKey)) {
        let NotedWrite(place) = self.note(of, WriteVerb::Delete, None);
        if let Some((_, write)) = self.by.sent().writes.iter_mut().rev().find(|(noted, _)| Some(*noted) == place) {
            write.after = RecordedObject::Absent;
        }
    }
}

/// What a server answers to a write.
pub(crate) trait WriteAnswer {
    /// The object after it.
    fn after(&self, by: &WriteRecorder) -> RecordedObject;
}

impl WriteAnswer for Value {
    fn after(&self, by: &WriteRecorder) -> RecordedObject {
        by.digest_of(self)
    }
}

impl WriteAnswer for Deletion {
    fn after(&self, _: &WriteRecorder) -> RecordedObject {
        match self {
            Deletion::Gone => RecordedObject::Absent,
            Deletion::Pending(_) => RecordedObject::Going,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey { api_version: "v1".into(), kind: "ConfigMap".into(), namespace: Some("n".into()), name: name.into() }
    }

    fn recorder() -> WriteRecorder {
        WriteRecorder::new(Box::new(Value::to_string))
    }

    fn sent(recorder: &WriteRecorder) -> Vec<(WriteVerb, RecordedObject, RecordedObject, bool)> {
        let (writes, _) = recorder.take();
        writes.into_iter().map(|write| (write.verb, write.before, write.after, write.is_answered)).collect()
    }

    #[test]
    fn c_331_a_write_is_noted_before_it_is_sent_and_one_that_was_not_done_is_not_listed() {
        let recorder = recorder();
        let (noted, name) = (Recorded { by: &recorder, former: None }, key("a"));
        let of = (&ClusterRef::Target, &name);
        let read =
            json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}, "data": {"x": "1"}, "status": {}});
        let digest =
            |data: &str| RecordedObject::Digest(json!({"metadata": {"name": "a"}, "data": {"x": data}}).to_string());
        let after = json!({"metadata": {"name": "a", "resourceVersion": "2"}, "data": {"x": "2"}});
        noted.answered(noted.note(of, WriteVerb::Create, None), &Ok(after.clone()));
        noted.answered(noted.note(of, WriteVerb::Replace, Some(&read)), &Ok(after));
        noted.answered::<Value>(
            noted.note(of, WriteVerb::Replace, Some(&read)),
            &Err(Error::Conflict { key: Box::new(name.clone()) }),
        );
        let given_up = Error::Abandoned { message: String::new() };
        noted.answered::<Value>(noted.note(of, WriteVerb::Patch, Some(&read)), &Err(given_up));
        let _never_answered = noted.note(of, WriteVerb::Apply, None);
        noted.answered(noted.note(of, WriteVerb::Delete, Some(&read)), &Ok(Deletion::Gone));
        noted.found_gone(of);
        let (unknown, absent) = (RecordedObject::Unknown, RecordedObject::Absent);
        let expected = [
            (WriteVerb::Create, absent.clone(), digest("2"), true),
            (WriteVerb::Replace, digest("1"), digest("2"), true),
            (WriteVerb::Patch, digest("1"), unknown.clone(), false),
            (WriteVerb::Apply, unknown.clone(), unknown.clone(), false),
            (WriteVerb::Delete, digest("1"), absent.clone(), true),
            (WriteVerb::Delete, unknown, absent, false),
        ];
        assert_eq!(sent(&recorder), expected);
        assert_eq!(sent(&recorder), [], "they are taken once");
    }

    #[test]
    fn c_335_limits_job_histories_writes_of_a_call_beyond_a_number_are_counted() {
        let recorder = recorder();
        let noted = Recorded { by: &recorder, former: Some("u") };
        for _ in 0..MOST_SENT_WRITES + 2 {
            let _never_answered = noted.note((&ClusterRef::Target, &key("a")), WriteVerb::Apply, None);
        }
        let (writes, more) = recorder.take();
        assert_eq!((writes.len(), more), (MOST_SENT_WRITES, 2));
        assert!(writes.iter().all(|write| write.former.as_deref() == Some("u")));
    }
}
