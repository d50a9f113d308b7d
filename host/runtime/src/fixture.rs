//! What several tests of this room begin with.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use jiff::Timestamp;
use kube::Client;
use orangery_core::port::Clock;
use orangery_embedded::{Options, Server, Storage};

use crate::{
    machine::SystemClock,
    requests::{Requests, in_process},
};

/// An embedded server in memory, and a client of it.
pub(crate) async fn server() -> (Server, Client) {
    let options = Options {
        storage: Storage::Memory,
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        clock: Arc::new(|| SystemClock.now()),
    };
    let server = orangery_embedded::start(options).await.unwrap();
    let client = in_process(server.router(), &Requests::default());
    (server, client)
}

/// A clock that stands still.
pub(crate) struct Still;

impl Still {
    pub(crate) const TIME: Timestamp = Timestamp::UNIX_EPOCH;
}

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Self::TIME
    }
}
