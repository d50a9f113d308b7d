//! What components export: the functions of the contract, their requests and their answers.

use serde::{Deserialize, Serialize};
use wasmtime::{
    AsContextMut,
    component::{
        Component as Code, ComponentNamedList, Instance, InstancePre, Lift, Linker, Lower, types::ComponentItem,
    },
};

use crate::{
    bindings::{
        deployer::{
            exports::orangery::deployer::{deploy, tests, uninstall, validate},
            orangery::deployer::{
                plan::{Next, Proposal},
                types::{Fault, Problem},
            },
        },
        gate::exports::orangery::gate::gate,
        template::exports::orangery::template::{check, template},
    },
    error::Error,
};

/// An interface that the host calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Interface {
    Deploy,
    Uninstall,
    Tests,
    Validate,
    Template,
    Check,
    Gate,
}

impl Interface {
    pub(crate) const ALL: [Self; 7] =
        [Self::Deploy, Self::Uninstall, Self::Tests, Self::Validate, Self::Template, Self::Check, Self::Gate];

    /// As the contract names it, without the version.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Deploy => "orangery:deployer/deploy",
            Self::Uninstall => "orangery:deployer/uninstall",
            Self::Tests => "orangery:deployer/tests",
            Self::Validate => "orangery:deployer/validate",
            Self::Template => "orangery:template/template",
            Self::Check => "orangery:template/check",
            Self::Gate => "orangery:gate/gate",
        }
    }
}

/// A call of an exported function.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ExportRequest {
    Plan(deploy::Item),
    Uninstall(deploy::Item),
    FindTests(tests::Subject),
    /// The schema of configurations.
    Schema,
    /// What is wrong with a configuration, which is JSON.
    Problems(String),
    Render(template::Request),
    Check(template::Request),
    Evaluate(gate::GateQuestion),
}

/// What an exported function answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ExportAnswer {
    /// Of `plan` of both interfaces.
    Plan(Result<Proposal, Fault>),
    FindTests(Result<Option<Vec<tests::Test>>, Fault>),
    Schema(String),
    Problems(Vec<Problem>),
    Render(Result<template::Rendered, template::Failure>),
    Check(Option<check::Findings>),
    Evaluate(gate::Answer),
}

/// The exported functions of a component that was linked for stores of this data.
pub(crate) struct ExportedFunctions<T: 'static> {
    pub(crate) pre: InstancePre<T>,
    deploy: Option<deploy::GuestIndices>,
    uninstall: Option<uninstall::GuestIndices>,
    tests: Option<tests::GuestIndices>,
    validate: Option<validate::GuestIndices>,
    template: Option<template::GuestIndices>,
    check: Option<check::GuestIndices>,
    gate: Option<gate::GuestIndices>,
}

impl<T: Send + 'static> ExportedFunctions<T> {
    /// Checks the imports and these exports of compiled code against the contract.
    pub(crate) fn link(linker: &Linker<T>, interfaces: &[Interface], code: &Code) -> Result<Self, Error> {
        let pre = linker.instantiate_pre(code).map_err(misfit)?;
        let mut exports = Self {
            pre,
            deploy: None,
            uninstall: None,
            tests: None,
            validate: None,
            template: None,
            check: None,
            gate: None,
        };
        interfaces.iter().try_for_each(|interface| exports.find(*interface))?;
        Ok(exports)
    }

    fn find(&mut self, interface: Interface) -> Result<(), Error> {
        match interface {
            Interface::Deploy => {
                self.typecheck::<(&deploy::Item,), (Result<Proposal, Fault>,)>(interface, "plan")?;
                self.deploy = Some(deploy::GuestIndices::new(&self.pre).map_err(misfit)?);
            }
            Interface::Uninstall => {
                self.typecheck::<(&deploy::Item,), (Result<Proposal, Fault>,)>(interface, "plan")?;
                self.uninstall = Some(uninstall::GuestIndices::new(&self.pre).map_err(misfit)?);
            }
            Interface::Tests => {
                type FoundTests = (Result<Option<Vec<tests::Test>>, Fault>,);
                self.typecheck::<(&tests::Subject,), FoundTests>(interface, "find")?;
                self.tests = Some(tests::GuestIndices::new(&self.pre).map_err(misfit)?);
            }
            Interface::Validate => {
                self.typecheck::<(), (String,)>(interface, "schema")?;
                self.typecheck::<(&str,), (Vec<Problem>,)>(interface, "check")?;
                self.validate = Some(validate::GuestIndices::new(&self.pre).map_err(misfit)?);
            }
            Interface::Template => {
                type Rendering = (Result<template::Rendered, template::Failure>,);
                self.typecheck::<(&template::Request,), Rendering>(interface, "render")?;
                self.template = Some(template::GuestIndices::new(&self.pre).map_err(misfit)?);
            }
            Interface::Check => {
                self.typecheck::<(&template::Request,), (Option<check::Findings>,)>(interface, "check")?;
                self.check = Some(check::GuestIndices::new(&self.pre).map_err(misfit)?);
            }
            Interface::Gate => {
                self.typecheck::<(&gate::GateQuestion,), (gate::Answer,)>(interface, "evaluate")?;
                self.gate = Some(gate::GuestIndices::new(&self.pre).map_err(misfit)?);
            }
        }
        Ok(())
    }

    /// Whether an exported function has the types of the contract; the bindings would find out at the first call only.
    fn typecheck<P, A>(&self, interface: Interface, function: &str) -> Result<(), Error>
    where
        P: ComponentNamedList + Lower,
        A: ComponentNamedList + Lift,
    {
        let interface = interface.name();
        let code = self.pre.component();
        let version = format!("{interface}@0.1.0");
        let found = code.get_export_index(None, &version).and_then(|index| code.get_export(Some(&index), function));
        match found {
            Some((ComponentItem::ComponentFunc(exported), _)) => exported
                .typecheck::<P, A>(&self.pre.instance_type())
                .map_err(|error| Error::Link { why: format!("`{function}` of {interface}: {error:#}") }),
            Some(_) | None => Err(Error::Link { why: format!("`{function}` of {interface} is not there") }),
        }
    }

    /// Calls an exported function of an instance of this component.
    pub(crate) async fn call(
        &self,
        mut store: impl AsContextMut<Data = T>,
        instance: &Instance,
        request: &ExportRequest,
    ) -> wasmtime::Result<ExportAnswer> {
        match request {
            ExportRequest::Plan(item) => {
                let guest = exported(&self.deploy)?.load(&mut store, instance)?;
                Ok(ExportAnswer::Plan(guest.call_plan(&mut store, item).await?))
            }
            ExportRequest::Uninstall(item) => {
                let guest = exported(&self.uninstall)?.load(&mut store, instance)?;
                Ok(ExportAnswer::Plan(guest.call_plan(&mut store, item).await?))
            }
            ExportRequest::FindTests(subject) => {
                let guest = exported(&self.tests)?.load(&mut store, instance)?;
                Ok(ExportAnswer::FindTests(guest.call_find(&mut store, subject).await?))
            }
            ExportRequest::Schema => {
                let guest = exported(&self.validate)?.load(&mut store, instance)?;
                Ok(ExportAnswer::Schema(guest.call_schema(&mut store).await?))
            }
            ExportRequest::Problems(config) => {
                let guest = exported(&self.validate)?.load(&mut store, instance)?;
                Ok(ExportAnswer::Problems(guest.call_check(&mut store, config).await?))
            }
            ExportRequest::Render(request) => {
                let guest = exported(&self.template)?.load(&mut store, instance)?;
                Ok(ExportAnswer::Render(guest.call_render(&mut store, request).await?))
            }
            ExportRequest::Check(request) => {
                let guest = exported(&self.check)?.load(&mut store, instance)?;
                Ok(ExportAnswer::Check(guest.call_check(&mut store, request).await?))
            }
            ExportRequest::Evaluate(question) => {
                let guest = exported(&self.gate)?.load(&mut store, instance)?;
                Ok(ExportAnswer::Evaluate(guest.call_evaluate(&mut store, question).await?))
            }
        }
    }
}

fn misfit(error: wasmtime::Error) -> Error {
    Error::Link { why: format!("{error:#}") }
}

impl ExportAnswer {
    /// The lists of bytes in it, always in the same order.
    pub(crate) fn byte_lists(&mut self) -> Vec<&mut Vec<u8>> {
        let Self::Plan(Ok(Proposal { next, recover, .. })) = self else { return Vec::new() };
        let next = match next {
            Next::ContinueWith(checkpoint) | Next::AgainIn((_, checkpoint)) => Some(checkpoint),
            Next::Finish(_) | Next::Fail(_) => None,
        };
        next.into_iter().chain(recover).collect()
    }
}

/// An export that [`ExportedFunctions::link`] was asked for.
fn exported<I>(indices: &Option<I>) -> wasmtime::Result<&I> {
    indices.as_ref().ok_or_else(|| wasmtime::Error::msg("a function was called that the component does not export"))
}
