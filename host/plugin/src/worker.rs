//! Calls of components in processes of their own, so that what a guest makes of a bug in the engine is made where nothing
//! is: no credentials, no files, no network, no other namespace.
//!
//! A worker is this program again. It is told what it serves, loads compiled code from a descriptor, confines itself, and
//! then makes one call after the other, each in a fresh instance. It reaches the host by one socket: whatever a guest asks
//! for is a frame to the host, which answers with the code that answers guests inside ([`crate::capability`]), by the same
//! grants and budgets. The host believes nothing that a worker says: frames are bounded before they are read and while they
//! are decoded, the wall clock is the host's, and a worker that does not answer as calls do is killed.
//!
//! A worker serves one component for one namespace. So whoever has broken out of an instance reads nothing but what the same
//! component was told for the same namespace.

mod connection;
mod frame;
mod host_calls;
mod pool;
mod process;
mod remote;
mod serve;

pub(crate) use pool::Workers;
pub use process::WorkerCommand;
pub(crate) use process::{COMPILE, COMPILE_COUNTING, CompiledCode, OF_ALLOCATOR};
pub use serve::call_worker_main;

use self::frame::{WorkerFrame, decode_untrusted};
use crate::{budget::Budget, convert, export::ExportAnswer};

/// Reads what a worker says as the host does: a frame, and the proposal in it within the usual budget. For who tries what a worker
/// could say.
///
/// # Errors
/// It is no frame, or its proposal is refused.
pub fn read_worker_frame(bytes: &[u8]) -> Result<(), String> {
    let frame: WorkerFrame = decode_untrusted(bytes).map_err(|error| error.to_string())?;
    let WorkerFrame::End(Ok(answer)) = frame else { return Ok(()) };
    match answer.whole() {
        ExportAnswer::Plan(Ok(proposal)) => {
            convert::proposal(proposal, &Budget::default()).map(drop).map_err(|error| error.to_string())
        }
        ExportAnswer::Plan(Err(_))
        | ExportAnswer::FindTests(_)
        | ExportAnswer::Schema(_)
        | ExportAnswer::Problems(_)
        | ExportAnswer::Render(_)
        | ExportAnswer::Check(_)
        | ExportAnswer::Evaluate(_) => Ok(()),
    }
}
