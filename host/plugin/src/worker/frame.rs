//! What host and worker say to each other: frames of four bytes of length, big-endian, and a value in the form of postcard.

use std::{cell::Cell, rc::Rc};

use postcard::de_flavors::{Flavor, Slice};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Visitor},
};

use crate::{
    bindings::deployer::orangery::deployer::{
        log::Level,
        types::{ClusterRef, ObjectKey, Selection},
    },
    budget::Budget,
    cost::{CallCost, CodeCounts},
    error::Error,
    export::{ExportAnswer, ExportRequest, Interface},
    instance::{CallEnd, CallTerms},
    transcript::Channel,
};

/// Bytes of the length of a frame.
pub(super) const PREFIX: usize = 4;

/// The most lengths, numbers, names of cases and the like in a frame of a worker; an object that is written has seven at least.
///
/// Each may take up to 152 bytes of memory, as a `deletion-scope` does in a list, and a list that grows three times as much: 120
/// MiB, so that a proposal of 20,000 objects has room. What texts and lists of bytes hold is bounded by the bytes of the frame.
pub(super) const MOST_FRAME_PARTS: usize = 1 << 18;

/// The first frame, to the worker: what it is for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WorkerStart {
    /// What the component exports.
    pub(super) interfaces: Vec<Interface>,
    /// What each of its calls may spend.
    pub(super) budget: Budget,
    /// What its code counts, where the costs of its calls are asked for.
    pub(super) measured: Option<CodeCounts>,
}

/// A call, to the worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WorkerCall {
    pub(super) terms: CallTerms,
    pub(super) request: ExportRequest,
}

/// The answer to a host call, to the worker: a value of the type that the call has, in bytes of its own.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum HostReply {
    Answer(Octets),
    /// The call has ended; the host knows why.
    Stop,
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum WorkerFrame {
    /// It has loaded the code and confined itself, or the code cannot be used.
    Ready(Result<(), LoadFailure>),
    /// The guest calls the host.
    Call(HostCall),
    /// The call has ended.
    End(Result<DetachedAnswer, CallEnd>),
    /// It has got a call, and begins. Whatever becomes of it afterwards becomes of the call.
    Begun,
    /// What the call has cost that ends now, where that is asked for.
    Cost(CallCost),
}

/// Why code cannot be used.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum LoadFailure {
    /// It is damaged.
    Compile(String),
    /// It does not fit the contract.
    Link(String),
    /// The worker could not load anything, or not confine itself.
    Worker(String),
}

impl From<Error> for LoadFailure {
    fn from(error: Error) -> Self {
        match error {
            Error::Compile { why } => Self::Compile(why),
            Error::Link { why } => Self::Link(why),
            other => Self::Worker(other.to_string()),
        }
    }
}

/// What a guest asks of the host, by the interfaces of `wit/`, and what the worker itself does.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum HostCall {
    /// So many more bytes of linear memory.
    Memory(u64),
    /// Bytes of a standard stream.
    Write(Channel, Octets),
    Log(Level, String, Vec<(String, String)>),
    ClusterGet(ClusterRef, ObjectKey),
    ClusterGetMany(ClusterRef, Vec<ObjectKey>),
    ClusterList(ClusterRef, Selection),
    ClusterVersion(ClusterRef),
    ClusterDiscover(ClusterRef),
    Oci(String),
    Url(String),
    HelmRepository {
        url: String,
        chart: String,
        version: String,
    },
    ComponentResource(String),
    ComponentDescriptors(String),
    /// Artifacts are known by the number of their entry in the host's table.
    ArtifactDigest(u32),
    ArtifactMediaType(u32),
    ArtifactSize(u32),
    ArtifactRead {
        artifact: u32,
        offset: u64,
        length: u32,
    },
    ArtifactLayer(u32, String),
    ArtifactDrop(u32),
    FileRead(String),
    FileList(String),
    Component(Option<String>, Vec<(String, String)>),
    Resources(Option<String>, Vec<(String, String)>),
    ResourceKey(String),
    ResourceContent(String),
    IssueCredential {
        credential: String,
        arguments: String,
    },
    Now,
    RandomBytes {
        key: String,
        length: u32,
    },
}

/// An answer without its lists of bytes, which stand beside it: as parts of it they would be a part for each byte.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DetachedAnswer {
    answer: ExportAnswer,
    byte_lists: Vec<Octets>,
}

impl DetachedAnswer {
    pub(super) fn new(mut answer: ExportAnswer) -> Self {
        let byte_lists = answer.byte_lists().into_iter().map(|list| Octets(std::mem::take(list))).collect();
        Self { answer, byte_lists }
    }

    /// The whole answer. Lists that have no place in it are left out.
    pub(super) fn whole(mut self) -> ExportAnswer {
        for (list, octets) in self.answer.byte_lists().into_iter().zip(self.byte_lists) {
            *list = octets.0;
        }
        self.answer
    }
}

/// Bytes that are copied as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Octets(pub(super) Vec<u8>);

impl Serialize for Octets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Octets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OctetsVisitor;

        impl Visitor<'_> for OctetsVisitor {
            type Value = Octets;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Octets, E> {
                Ok(Octets(bytes.to_vec()))
            }
        }

        deserializer.deserialize_byte_buf(OctetsVisitor)
    }
}

/// A value as bytes, without the length before it.
pub(super) fn encode(value: &impl Serialize) -> Result<Vec<u8>, postcard::Error> {
    postcard::to_allocvec(value)
}

/// A whole frame with this value.
pub(super) fn frame(value: &impl Serialize) -> Result<Vec<u8>, postcard::Error> {
    let mut frame = postcard::to_extend(value, vec![0; PREFIX])?;
    let length = u32::try_from(frame.len() - PREFIX).map_err(|_| postcard::Error::SerializeBufferFull)?;
    if let Some(prefix) = frame.first_chunk_mut() {
        *prefix = length.to_be_bytes();
    }
    Ok(frame)
}

/// A value that the host sent: it is trusted.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, postcard::Error> {
    postcard::from_bytes(bytes)
}

/// Why a value of a worker is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnreadableFrame {
    /// It has more than [`MOST_FRAME_PARTS`].
    #[error("it has more than {MOST_FRAME_PARTS} parts")]
    TooManyParts,
    #[error(transparent)]
    Malformed(#[from] postcard::Error),
}

/// A value that a worker sent: it may be anything, and takes no more memory than [`MOST_FRAME_PARTS`] says, and its bytes.
pub(super) fn decode_untrusted<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, UnreadableFrame> {
    let parts = Rc::new(Cell::new(Some(MOST_FRAME_PARTS)));
    let mut deserializer =
        postcard::Deserializer::from_flavor(Counted { rest: Slice::new(bytes), parts: Rc::clone(&parts) });
    // What reads says nothing of why it was refused.
    let why =
        |error| if parts.get().is_none() { UnreadableFrame::TooManyParts } else { UnreadableFrame::Malformed(error) };
    let value = T::deserialize(&mut deserializer).map_err(why)?;
    match deserializer.finalize()? {
        [] => Ok(value),
        _ => Err(postcard::Error::DeserializeBadEncoding.into()),
    }
}

/// Bytes that are read one by one are counted: they are what structure is made of.
struct Counted<'de> {
    rest: Slice<'de>,
    /// How many more there may be; `None` where there were too many.
    parts: Rc<Cell<Option<usize>>>,
}

impl<'de> Flavor<'de> for Counted<'de> {
    type Remainder = &'de [u8];
    type Source = &'de [u8];

    fn pop(&mut self) -> postcard::Result<u8> {
        let left = self.parts.get().and_then(|parts| parts.checked_sub(1));
        self.parts.set(left);
        if left.is_none() {
            return Err(postcard::Error::DeserializeBadEncoding);
        }
        self.rest.pop()
    }

    fn size_hint(&self) -> Option<usize> {
        self.rest.size_hint()
    }

    fn try_take_n(&mut self, count: usize) -> postcard::Result<&'de [u8]> {
        self.rest.try_take_n(count)
    }

    fn finalize(self) -> postcard::Result<&'de [u8]> {
        self.rest.finalize()
    }
}

#[cfg(test)]
mod tests {
    use crate::bindings::{
        deployer::{
            exports::orangery::deployer::tests::Test,
            orangery::deployer::plan::{
                DeletionGroup, DeletionScope, ExportRule, ExportSource, Gate, Injection, Next, ObjectRemoval,
                ObjectWrite, Ownership, Proposal, Readiness, ReadinessRule, Requirement, Scope, SecretContent, Stage,
                Write,
            },
        },
        template::exports::orangery::template::{
            check::Reference,
            template::{Failure, InputStep},
        },
    };

    use super::*;

    /// Bytes of memory for each part of a frame that a value takes at most, as an element of a list.
    const BYTES_OF_A_PART: usize = 152;

    /// The bytes that the smallest value of a type takes in a list, for each of its parts.
    fn bytes_of_a_part<T: Serialize>(smallest: &T) -> usize {
        size_of::<T>() / encode(smallest).unwrap().len()
    }

    #[test]
    fn limits_workers_the_parts_of_a_frame_take_so_much_memory() {
        let text = String::new;
        let on = || ClusterRef::Target;
        let key = || ObjectKey { api_version: text(), kind: text(), namespace: None, name: text() };
        let failure = Failure { message: text(), file: None, line: None, column: None, snippet: None, reads: vec![] };
        let write = ObjectWrite {
            object: text(),
            inject: vec![],
            on: on(),
            how: Write::Apply,
            owned: Ownership::Managed,
            at_creation: None,
            before_deletion: None,
        };
        let readiness =
            Readiness { name: text(), on: on(), scope: Scope::Stage, rule: ReadinessRule::Usual, timeout: None };
        let stage = Stage { name: text(), removals: vec![], writes: vec![], gate: Gate::Accepted, timeout: None };
        let test = Test {
            source: text(),
            object: text(),
            delete_before: false,
            delete_after_success: false,
            delete_after_failure: false,
        };
        let each = [
            bytes_of_a_part(&text()),
            bytes_of_a_part(&(text(), text())),
            bytes_of_a_part(&Octets::default()),
            bytes_of_a_part(&key()),
            bytes_of_a_part(&Injection { at: text(), content: SecretContent::Kubeconfig(on()) }),
            bytes_of_a_part(&write),
            bytes_of_a_part(&ObjectRemoval { key: key(), on: on(), force: false }),
            bytes_of_a_part(&Requirement { path: text(), operator: text(), values: vec![] }),
            bytes_of_a_part(&readiness),
            bytes_of_a_part(&stage),
            bytes_of_a_part(&ExportRule { key: text(), source: ExportSource::Value(text()) }),
            bytes_of_a_part(&DeletionScope::Namespaced),
            bytes_of_a_part(&DeletionGroup { on: on(), what: vec![], force: false }),
            bytes_of_a_part(&test),
            bytes_of_a_part(&InputStep::Items),
            bytes_of_a_part(&Vec::<InputStep>::new()),
            bytes_of_a_part(&failure),
            bytes_of_a_part(&Reference { path: vec![], file: None, line: None, column: None }),
        ];
        assert_eq!(each.iter().max(), Some(&BYTES_OF_A_PART), "{each:?}");
        // A list that grows has the old one beside the new one, which is twice as large.
        const { assert!(3 * BYTES_OF_A_PART * MOST_FRAME_PARTS < 120 << 20) };
        assert_eq!(encode(&write).unwrap().len(), 7);
    }

    fn proposal(next: Next, recover: Option<Vec<u8>>) -> ExportAnswer {
        let (deletion_order, pruning_order) = (vec![], vec![]);
        ExportAnswer::Plan(Ok(Proposal { stages: vec![], next, recover, status: None, deletion_order, pruning_order }))
    }

    #[test]
    fn an_answer_comes_back_whole_whatever_bytes_are_in_it() {
        let large = vec![7; 2 * MOST_FRAME_PARTS];
        for (next, recover) in [
            (Next::ContinueWith(large.clone()), Some(large.clone())),
            (Next::AgainIn((5, vec![1])), None),
            (Next::ContinueWith(vec![]), Some(vec![2])),
            (
                Next::Finish(crate::bindings::deployer::orangery::deployer::plan::Completion {
                    exports: vec![],
                    afterwards: vec![],
                }),
                Some(large),
            ),
        ] {
            let answer = || proposal(next.clone(), recover.clone());
            let bytes = encode(&DetachedAnswer::new(answer())).unwrap();
            let back = decode_untrusted::<DetachedAnswer>(&bytes).unwrap().whole();
            assert_eq!(format!("{back:?}"), format!("{:?}", answer()));
        }
    }

    #[test]
    fn limits_workers_a_frame_of_many_small_parts_is_refused_before_it_takes_memory() {
        let bomb =
            |parts: usize| encode(&HostCall::Log(Level::Info, String::new(), vec![Default::default(); parts])).unwrap();
        assert!(decode_untrusted::<HostCall>(&bomb(MOST_FRAME_PARTS / 2 - 10)).is_ok());
        let bomb = decode_untrusted::<HostCall>(&bomb(MOST_FRAME_PARTS / 2 + 10));
        assert_eq!(bomb.err(), Some(UnreadableFrame::TooManyParts));
        // A length that nothing follows.
        let cut = decode_untrusted::<HostCall>(&[2, 2, 0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert!(matches!(cut, Err(UnreadableFrame::Malformed(_))), "{cut:?}");
    }

    #[test]
    fn c_71_what_is_no_frame_or_more_than_one_is_refused() {
        let mut bytes = encode(&WorkerFrame::Call(HostCall::Now)).unwrap();
        assert!(matches!(decode_untrusted(&bytes), Ok(WorkerFrame::Call(HostCall::Now))));
        bytes.push(0);
        assert!(decode_untrusted::<WorkerFrame>(&bytes).is_err());
        assert!(decode_untrusted::<WorkerFrame>(&[]).is_err());
        assert!(decode_untrusted::<WorkerFrame>(&[9]).is_err());
        assert!(decode_untrusted::<WorkerFrame>(&[1, 200]).is_err());
    }
}
