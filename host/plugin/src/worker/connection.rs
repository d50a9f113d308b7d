//! The host's end of the socket to a worker.

use std::{io, os::unix::net::UnixStream as IdleStream};

use serde::Serialize;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

use super::frame::{self, PREFIX, UnreadableFrame, WorkerFrame};

/// Why a worker is of no use any more.
#[derive(Debug)]
pub(super) enum Lost {
    /// It has closed its end, as a process that has ended does.
    Gone,
    /// It had done so before it began the call.
    GoneBefore,
    /// It said what no worker says.
    Nonsense(String),
    /// It said more than is read.
    TooManyParts,
}

impl Lost {
    /// The same, where the worker has not begun the call.
    pub(super) fn before(self) -> Self {
        match self {
            Self::Gone => Self::GoneBefore,
            other => other,
        }
    }
}

impl From<io::Error> for Lost {
    fn from(_: io::Error) -> Self {
        // Reset, broken pipe: on a socket between two processes all of them say that the other one has gone.
        Self::Gone
    }
}

/// The socket, and what was read of it and not looked at.
pub(super) struct WorkerConnection {
    stream: UnixStream,
    read: Vec<u8>,
}

fn framed(value: &impl Serialize) -> Result<Vec<u8>, Lost> {
    frame::frame(value).map_err(|error| Lost::Nonsense(format!("a frame to it cannot be made: {error}")))
}

/// Bytes that are read at once.
const READ: usize = 16 << 10;

impl WorkerConnection {
    /// A socket that no event loop knows of. It has to be non-blocking.
    pub(super) fn new(stream: IdleStream) -> io::Result<Self> {
        Ok(Self { stream: UnixStream::from_std(stream)?, read: Vec::new() })
    }

    /// The socket for the next call, in whichever event loop that runs; an error where the worker has said more than was
    /// asked.
    pub(super) fn into_idle(self) -> Result<IdleStream, Lost> {
        match self.read.as_slice() {
            [] => Ok(self.stream.into_std()?),
            _ => Err(Lost::Nonsense("it went on after its answer".to_owned())),
        }
    }

    pub(super) async fn send(&mut self, value: &impl Serialize) -> Result<(), Lost> {
        self.write(framed(value)?).await
    }

    /// The same of a value that is needed no more: while the worker reads it, it is in memory once.
    pub(super) async fn hand_over(&mut self, value: impl Serialize) -> Result<(), Lost> {
        let frame = framed(&value)?;
        drop(value);
        self.write(frame).await
    }

    async fn write(&mut self, frame: Vec<u8>) -> Result<(), Lost> {
        Ok(self.stream.write_all(&frame).await?)
    }

    /// The next frame, of at most `most` bytes.
    pub(super) async fn receive(&mut self, most: usize) -> Result<WorkerFrame, Lost> {
        loop {
            if let Some((prefix, rest)) = self.read.split_first_chunk::<PREFIX>() {
                let length = u32::from_be_bytes(*prefix) as usize;
                if length > most {
                    return Err(Lost::Nonsense(format!("a frame of {length} bytes, where at most {most} are read")));
                }
                if let Some(content) = rest.get(..length) {
                    let decoded = frame::decode_untrusted(content);
                    self.read.drain(..PREFIX + length);
                    return decoded.map_err(|error| match error {
                        UnreadableFrame::TooManyParts => Lost::TooManyParts,
                        UnreadableFrame::Malformed(error) => {
                            Lost::Nonsense(format!("a frame that cannot be read: {error}"))
                        }
                    });
                }
            }
            self.read.reserve(READ);
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(Lost::Gone);
            }
        }
    }
}
