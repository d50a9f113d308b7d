//! What `wit-bindgen` makes of `wit/`: types and import functions. Authors use the re-exports of the crate root.
//!
//! The `serde` attributes give the types the JSON form of `host/proposal/src/lib.rs`, which golden cases and recordings
//! are written in; a document that the contract carries as text stands there as the document itself.

#[expect(missing_docs, reason = "generated: the WIT has the words")]
pub mod deployer;
#[expect(missing_docs, reason = "generated: the WIT has the words")]
pub mod gate;
#[expect(missing_docs, reason = "generated: the WIT has the words")]
pub mod template;
