//! Between the generated types and the words of the core. What a guest answers is checked here, place by place.

mod answer;
mod failure;
mod place;
mod test_case;

use orangery_blueprint::{
    plugins::{GateQuestion, GateSubject},
    rendering::{ExecutionKind, RenderRequest},
};
use orangery_core::{
    error::{Fault, Problem},
    memory,
    workflow::GateKind,
};
use orangery_proposal::{ClusterRef, Item, ObjectKey, Selection, StageFailure};
use serde_json::Value;

pub(crate) use answer::{answered, proposal, rendered};
pub(crate) use failure::{findings, render_failure};
pub(crate) use test_case::test_cases;

use crate::bindings::{
    deployer::{exports::orangery::deployer::deploy, orangery::deployer::types as wire},
    gate::exports::orangery::gate::gate,
    template::exports::orangery::template::template,
};

/// The request of a deployer with this configuration; a recorded request may bring one along.
pub(crate) fn item(of: &Item, configuration: Option<&Value>) -> deploy::Item {
    deploy::Item {
        namespace: of.namespace.to_string(),
        name: of.name.to_string(),
        uid: of.uid.clone(),
        item_type: of.item_type.clone(),
        generation: of.generation,
        context: of.context.clone(),
        target: of.target.clone(),
        job: of.job.to_string(),
        config: of.config.to_string(),
        annotations: of.annotations.clone().into_iter().collect(),
        configuration: of.configuration.as_ref().or(configuration).map(ToString::to_string),
        status: of.status.as_ref().map(ToString::to_string),
        checkpoint: of.checkpoint.clone(),
        failed: of.failed.as_ref().map(stage_failure),
        now: of.now.clone(),
        seed: of.seed,
        timeout: of.timeout,
    }
}

fn stage_failure(of: &StageFailure) -> deploy::Failure {
    let key = |key: &ObjectKey| wire::ObjectKey {
        api_version: key.api_version.to_string(),
        kind: key.kind.to_string(),
        namespace: key.namespace.as_deref().map(str::to_owned),
        name: key.name.to_string(),
    };
    deploy::Failure {
        stage: of.stage.clone(),
        key: of.key.as_ref().map(key),
        problem: problem_for_guest(of.problem.clone()),
    }
}

/// The request of an engine.
pub(crate) fn request(of: &RenderRequest) -> template::Request {
    template::Request {
        execution: match of.execution {
            ExecutionKind::Import => template::Execution::Import,
            ExecutionKind::Deploy => template::Execution::Deploy,
            ExecutionKind::Subinstallation => template::Execution::Subinstallation,
            ExecutionKind::Export => template::Execution::Export,
            ExecutionKind::ImportMapping => template::Execution::ImportMapping,
            ExecutionKind::ExportMapping => template::Execution::ExportMapping,
        },
        name: of.name.clone(),
        file: of.file.clone(),
        template: of.template.clone(),
        inputs: of.inputs.to_string(),
        state: of.state.as_ref().map(ToString::to_string),
    }
}

/// What a gate expression, or a rule, asks.
pub(crate) fn question(of: &GateQuestion) -> gate::GateQuestion {
    gate::GateQuestion {
        item: of.item.clone(),
        gate: match of.gate {
            GateSubject::Expression(GateKind::Activate) => gate::GateKind::ActivateWhen,
            GateSubject::Expression(GateKind::When) => gate::GateKind::When,
            GateSubject::Expression(GateKind::Ready) => gate::GateKind::ReadyWhen,
            GateSubject::Expression(GateKind::Deleted) => gate::GateKind::DeletedWhen,
            GateSubject::ItemPlan => gate::GateKind::ItemPlan,
            GateSubject::JobPlan => gate::GateKind::JobPlan,
        },
        config: of.config.to_string(),
        inputs: Value::Object(of.inputs.clone()).to_string(),
    }
}

/// A fault that a guest answers.
pub(crate) fn fault(of: wire::Fault) -> Fault {
    match of {
        wire::Fault::Invalid(of) => Fault::Invalid(problem(of)),
        wire::Fault::Later(of) => Fault::Later(problem(of)),
        wire::Fault::Denied(of) => Fault::Denied(problem(of)),
    }
}

/// A fault that a guest is told.
pub(crate) fn fault_for_guest(of: Fault) -> wire::Fault {
    match of {
        Fault::Invalid(of) => wire::Fault::Invalid(problem_for_guest(of)),
        Fault::Later(of) => wire::Fault::Later(problem_for_guest(of)),
        Fault::Denied(of) => wire::Fault::Denied(problem_for_guest(of)),
    }
}

pub(crate) fn problem(of: wire::Problem) -> Problem {
    let wire::Problem { code, message, at } = of;
    Problem { code: code.into(), message, at }
}

fn problem_for_guest(of: Problem) -> wire::Problem {
    let Problem { code, message, at } = of;
    wire::Problem { code: code.into(), message, at }
}

/// The most memory, in bytes, that an argument of a host call may take as a value.
pub(crate) const MOST_ARGUMENT_BYTES: u64 = 32 << 20;

/// An argument of a host call, in JSON. The error is the end of a sentence.
pub(crate) fn argument(text: &str) -> Result<Value, String> {
    if memory::of_json(text) > MOST_ARGUMENT_BYTES {
        return Err(format!(
            "takes more than the {MOST_ARGUMENT_BYTES} bytes of memory that are allowed; hand in less"
        ));
    }
    serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))
}

/// Which cluster a guest means.
pub(crate) fn cluster_ref(of: wire::ClusterRef) -> ClusterRef {
    match of {
        wire::ClusterRef::Target => ClusterRef::Target,
        wire::ClusterRef::Host => ClusterRef::Host,
        wire::ClusterRef::Named(name) => ClusterRef::Named(name),
    }
}

/// Which object a guest means.
pub(crate) fn object_key(of: wire::ObjectKey) -> ObjectKey {
    let wire::ObjectKey { api_version, kind, namespace, name } = of;
    ObjectKey {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: namespace.map(Into::into),
        name: name.into(),
    }
}

/// Which objects a guest means.
pub(crate) fn selection(of: wire::Selection) -> Selection {
    let wire::Selection { api_version, kind, namespace, names, labels, fields } = of;
    Selection {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: namespace.map(Into::into),
        names: names.into_iter().map(Into::into).collect(),
        labels,
        fields,
    }
}
