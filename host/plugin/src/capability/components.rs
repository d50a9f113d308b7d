//! `orangery:template/components`: the component version of the blueprint, resolved, verified and cached by the port.

use orangery_ocm::Components;
use serde_json::Value;
use wasmtime::component::{HasData, Linker};

use super::{Capabilities, Guest, postponed::Postponed};
use crate::{
    bindings::template::orangery::template::components::{self, Host, Identity},
    convert,
    meter::Meter,
};

/// What `components` can see of a guest.
pub(crate) struct ComponentsView<'a> {
    port: Option<&'a dyn Components>,
    postponed: &'a Postponed,
    meter: &'a mut Meter,
}

struct HasComponents;

impl HasData for HasComponents {
    type Data<'a> = ComponentsView<'a>;
}

pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    components::add_to_linker::<Guest, HasComponents>(linker, |guest| guest.capabilities.components())
}

impl Capabilities {
    /// What is behind `components`.
    pub(crate) fn components(&mut self) -> ComponentsView<'_> {
        ComponentsView {
            port: self.context.as_ref().map(|context| context.components.as_ref()),
            postponed: &self.postponed,
            meter: &mut self.meter,
        }
    }
}

type ComponentCallResult<T> = wasmtime::Result<Result<T, String>>;

fn size(identity: &Identity) -> usize {
    identity.iter().map(|(name, value)| name.len() + value.len()).sum()
}

fn parsed(from: Option<String>) -> Result<Option<Value>, String> {
    from.as_deref().map(convert::argument).transpose().map_err(|error| format!("`from` {error}"))
}

impl<'v> ComponentsView<'v> {
    fn port(&mut self, bytes: usize) -> ComponentCallResult<&'v dyn Components> {
        self.meter.host_call(bytes)?;
        Ok(self.port.ok_or_else(|| "there is no blueprint in this call".to_owned()))
    }

    /// The port, and the descriptor that the guest chooses from.
    fn chosen(
        &mut self,
        from: Option<String>,
        select: &Identity,
    ) -> ComponentCallResult<(&'v dyn Components, Option<Value>)> {
        let port = self.port(from.as_ref().map_or(0, String::len) + size(select))?;
        Ok(port.and_then(|port| Ok((port, parsed(from)?))))
    }

    /// Counts what a port answered.
    fn carry<T>(&mut self, answer: T, size: impl Fn(&T) -> usize) -> ComponentCallResult<T> {
        self.meter.carry(size(&answer))?;
        Ok(Ok(answer))
    }
}

impl Host for ComponentsView<'_> {
    async fn component(&mut self, from: Option<String>, select: Identity) -> ComponentCallResult<String> {
        let (port, from) = match self.chosen(from, &select)? {
            Ok(chosen) => chosen,
            Err(message) => return Ok(Err(message)),
        };
        match self.meter.wait(port.component(from.as_ref(), &select)).await {
            Ok(descriptor) => self.carry(descriptor.to_string(), String::len),
            Err(fault) => Ok(Err(self.postponed.tell(fault))),
        }
    }

    async fn resources(&mut self, from: Option<String>, select: Identity) -> ComponentCallResult<Vec<String>> {
        let (port, from) = match self.chosen(from, &select)? {
            Ok(chosen) => chosen,
            Err(message) => return Ok(Err(message)),
        };
        match self.meter.wait(port.resources(from.as_ref(), &select)).await {
            Ok(found) => {
                let texts = found.iter().map(Value::to_string).collect();
                self.carry(texts, |texts: &Vec<String>| texts.iter().map(String::len).sum())
            }
            Err(fault) => Ok(Err(self.postponed.tell(fault))),
        }
    }

    async fn resource_key(&mut self, reference: String) -> ComponentCallResult<String> {
        let port = match self.port(reference.len())? {
            Ok(port) => port,
            Err(none) => return Ok(Err(none)),
        };
        match self.meter.wait(port.resource_key(&reference)).await {
            Ok(key) => self.carry(key, String::len),
            Err(fault) => Ok(Err(self.postponed.tell(fault))),
        }
    }

    async fn resource_content(&mut self, reference: String) -> ComponentCallResult<Vec<u8>> {
        let port = match self.port(reference.len())? {
            Ok(port) => port,
            Err(none) => return Ok(Err(none)),
        };
        match self.meter.wait(port.resource_content(&reference)).await {
            Ok(content) => self.carry(content, Vec::len),
            Err(fault) => Ok(Err(self.postponed.tell(fault))),
        }
    }
}
