//! `orangery:template/kubeconfigs`: there is no backend yet, and every call says so.

use wasmtime::component::{HasData, Linker};

use super::Guest;
use crate::{
    bindings::template::orangery::template::kubeconfigs::{self, Host},
    meter::Meter,
    transcript::escaped,
};

/// What `kubeconfigs` can see of a guest.
pub(crate) struct KubeconfigsView<'a> {
    meter: &'a mut Meter,
}

struct HasKubeconfigs;

impl HasData for HasKubeconfigs {
    type Data<'a> = KubeconfigsView<'a>;
}

pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    kubeconfigs::add_to_linker::<Guest, HasKubeconfigs>(linker, |guest| KubeconfigsView { meter: &mut guest.meter })
}

impl Host for KubeconfigsView<'_> {
    async fn mint(&mut self, kind: String, arguments: String) -> wasmtime::Result<Result<String, String>> {
        self.meter.host_call(kind.len() + arguments.len())?;
        Ok(Err(format!("this host does not mint credentials of kind {} yet", escaped(&kind, 64))))
    }
}
