//! `orangery:template/chance`: needs a store of answers per job, which does not exist yet; a call ends with that sentence.

use wasmtime::component::{HasData, Linker};

use super::Guest;
use crate::{
    bindings::template::orangery::template::chance::{self, Host},
    error::Stop,
};

/// What `chance` can see of a guest.
pub(crate) struct ChanceView;

struct HasChance;

impl HasData for HasChance {
    type Data<'a> = ChanceView;
}

const NAME: &str = "orangery:template/chance";

pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    chance::add_to_linker::<Guest, HasChance>(linker, |_| ChanceView)
}

impl Host for ChanceView {
    async fn now(&mut self) -> wasmtime::Result<String> {
        Err(Stop::Unavailable(NAME).into())
    }

    async fn bytes(&mut self, _key: String, _length: u32) -> wasmtime::Result<Vec<u8>> {
        Err(Stop::Unavailable(NAME).into())
    }
}
