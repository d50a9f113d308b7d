//! `orangery:template/kubeconfigs`: credentials, each kind by a grant of its own. What is issued is hidden from all words.

use std::sync::{Arc, Mutex};

use orangery_blueprint::template_engine::Kubeconfigs;
use orangery_proposal::grant::Grants;
use serde_json::Value;
use wasmtime::component::{HasData, Linker};

use super::{Capabilities, Guest, locked, postponed::Postponed};
use crate::{
    bindings::template::orangery::template::kubeconfigs::{self, Host},
    convert,
    meter::Meter,
    transcript::Transcript,
};

/// What `kubeconfigs` can see of a guest.
pub(crate) struct KubeconfigsView<'a> {
    port: Option<&'a dyn Kubeconfigs>,
    grants: &'a Grants,
    postponed: &'a Postponed,
    transcript: &'a Mutex<Transcript>,
    meter: &'a mut Meter,
}

struct HasKubeconfigs;

impl HasData for HasKubeconfigs {
    type Data<'a> = KubeconfigsView<'a>;
}

pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    kubeconfigs::add_to_linker::<Guest, HasKubeconfigs>(linker, |guest| guest.capabilities.kubeconfigs())
}

impl Capabilities {
    /// What is behind `kubeconfigs`.
    pub(crate) fn kubeconfigs(&mut self) -> KubeconfigsView<'_> {
        KubeconfigsView {
            port: self.context.as_ref().map(|context| context.kubeconfigs.as_ref()),
            grants: &self.grants,
            postponed: &self.postponed,
            transcript: Arc::as_ref(&self.transcript),
            meter: &mut self.meter,
        }
    }
}

impl Host for KubeconfigsView<'_> {
    async fn issue_credential(
        &mut self,
        credential_kind: String,
        arguments: String,
    ) -> wasmtime::Result<Result<String, String>> {
        self.meter.host_call(credential_kind.len() + arguments.len())?;
        if let Err(refusal) = self.grants.kubeconfig(&credential_kind) {
            return Ok(Err(refusal.to_string()));
        }
        let Some(port) = self.port else { return Ok(Err("there is no blueprint in this call".to_owned())) };
        let arguments: Value = match convert::argument(&arguments) {
            Ok(arguments @ Value::Object(_)) => arguments,
            Ok(_) => return Ok(Err("`arguments` is not a JSON object".to_owned())),
            Err(error) => return Ok(Err(format!("`arguments` {error}"))),
        };
        match self.meter.wait(port.issue_credential(&credential_kind, &arguments)).await {
            Ok(issued) => {
                locked(self.transcript).hide(&issued);
                let text = issued.to_string();
                self.meter.carry(text.len())?;
                Ok(Ok(text))
            }
            Err(fault) => Ok(Err(self.postponed.tell(fault))),
        }
    }
}
