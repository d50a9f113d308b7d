//! `orangery:deployer/log`: lines into the call's transcript.

use std::sync::{Arc, Mutex};

use wasmtime::component::{HasData, Linker};

use super::{Capabilities, Guest, locked};
use crate::{
    bindings::deployer::orangery::deployer::log::{self, Host},
    meter::Meter,
    transcript::{Level, Transcript},
};

/// What `log` can see of a guest.
pub(crate) struct LogView<'a> {
    meter: &'a mut Meter,
    transcript: &'a Arc<Mutex<Transcript>>,
}

struct HasLog;

impl HasData for HasLog {
    type Data<'a> = LogView<'a>;
}

pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    log::add_to_linker::<Guest, HasLog>(linker, |guest| guest.capabilities.log())
}

impl Capabilities {
    /// What is behind `log`.
    pub(crate) fn log(&mut self) -> LogView<'_> {
        LogView { meter: &mut self.meter, transcript: &self.transcript }
    }
}

impl Host for LogView<'_> {
    async fn log(&mut self, at: log::Level, message: String, fields: Vec<(String, String)>) -> wasmtime::Result<()> {
        self.meter.host_call(message.len())?;
        let level = match at {
            log::Level::Trace => Level::Trace,
            log::Level::Debug => Level::Debug,
            log::Level::Info => Level::Info,
            log::Level::Warn => Level::Warn,
            log::Level::Error => Level::Error,
        };
        locked(self.transcript).line(level, &message, &fields)?;
        Ok(())
    }
}
