//! Validating admission policies: rules in CEL that a cluster keeps as objects, and that every write is held against.
//!
//! What is carried out: creates and updates, selectors, match conditions, variables, messages; the actions Deny and
//! Warn. Parameters, audit annotations and deletions are not. What an expression may cost is bounded, though not as a
//! cluster counts it.

mod constraints;

use std::sync::{Arc, PoisonError, RwLock};

use orangery_expression::{Expression, ExpressionScope};
use serde_json::{Value, json};
use tokio::sync::watch;

use self::constraints::Constraints;
use crate::{
    object::{self, at, items, text},
    off_the_executor::off_the_executor,
    operation::ObjectPart,
    refusal::{Refusal, RefusalReason, StatusCause},
    resource::Served,
    store::ObjectStore,
};

/// The kind of the policies.
pub(crate) const KIND: &str = "ValidatingAdmissionPolicy";
const POLICIES: &str = "validatingadmissionpolicies.admissionregistration.k8s.io";
const BINDINGS: &str = "validatingadmissionpolicybindings.admissionregistration.k8s.io";

/// A write that is about to happen.
pub(crate) struct Attempt<'a> {
    pub(crate) served: &'a Served,
    pub(crate) part: ObjectPart,
    /// The namespace that the object lies in; none for objects of the cluster.
    pub(crate) namespace: Option<&'a Value>,
    /// None for a create.
    pub(crate) old: Option<&'a Value>,
    pub(crate) new: &'a Value,
    pub(crate) dry_run: bool,
}

/// The policies of a cluster: read anew when one of them, or a binding, has changed.
#[derive(Debug)]
pub(crate) struct Policies {
    /// Of the policies and of the bindings.
    bells: [watch::Receiver<u64>; 2],
    /// What was read last, and what the bells said then. Replaced as a whole.
    read: RwLock<Option<PolicyIndex>>,
}

type PolicyIndex = ([u64; 2], Arc<[BoundPolicy]>);

/// A policy in the form that one binding gives it.
#[derive(Debug)]
struct BoundPolicy {
    policy: Arc<AdmissionPolicy>,
    binding: String,
    constraints: Constraints,
    denies: bool,
    warns: bool,
}

#[derive(Debug)]
struct AdmissionPolicy {
    name: String,
    constraints: Constraints,
    conditions: Vec<Expression>,
    variables: Vec<(String, Expression)>,
    validations: Vec<Validation>,
    /// Whether an expression that fails is as good as one that holds.
    lenient: bool,
}

#[derive(Debug)]
struct Validation {
    expression: Expression,
    message: String,
    message_expression: Option<Expression>,
    reason: RefusalReason,
}

/// Why a write is not as a policy wants it.
struct Objection<'a> {
    message: String,
    reason: RefusalReason,
    bound: &'a BoundPolicy,
}

impl Policies {
    /// The policies that lie in a store.
    pub(crate) fn of(store: &ObjectStore) -> Self {
        Self { bells: [store.bell(POLICIES), store.bell(BINDINGS)], read: RwLock::default() }
    }

    /// Refuses what a policy denies, and answers the warnings of the others.
    pub(crate) fn classify(&self, store: &ObjectStore, attempt: &Attempt<'_>) -> Result<Vec<String>, Refusal> {
        let current = self.current(store);
        let selected: Vec<&BoundPolicy> = current.iter().filter(|bound| bound.selects(attempt)).collect();
        // Their authors chose how long that takes.
        if selected.is_empty() { Ok(Vec::new()) } else { off_the_executor(|| classify(&selected, attempt)) }
    }

    fn current(&self, store: &ObjectStore) -> Arc<[BoundPolicy]> {
        let rung = self.bells.each_ref().map(|bell| *bell.borrow());
        let kept = self.read.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, bound)) = kept.filter(|(then, _)| *then == rung) {
            return bound;
        }
        let bound = off_the_executor(|| read(store));
        *self.read.write().unwrap_or_else(PoisonError::into_inner) = Some((rung, Arc::clone(&bound)));
        bound
    }
}

/// What policies that select a write have to say to it.
fn classify(selected: &[&BoundPolicy], attempt: &Attempt<'_>) -> Result<Vec<String>, Refusal> {
    let mut warnings = Vec::new();
    for bound in selected {
        for objection in bound.objections(attempt) {
            if bound.denies {
                return Err(objection.refusal(attempt));
            }
            if bound.warns {
                warnings.push(objection.sentence("failed validation"));
            }
        }
    }
    Ok(warnings)
}

fn read(store: &ObjectStore) -> Arc<[BoundPolicy]> {
    let all = |collection: &str| store.list(collection, None, None).entries.into_iter().map(|(_, entry)| entry.value());
    // One that cannot be read was refused when it was written.
    let policies: Vec<Arc<AdmissionPolicy>> =
        all(POLICIES).filter_map(|policy| AdmissionPolicy::read(&policy).ok()).map(Arc::new).collect();
    let bind = |binding: Value| {
        let name = text(&binding, &["spec", "policyName"]).unwrap_or_default();
        let policy = policies.iter().find(|policy| policy.name == name)?;
        let does = |action: &str| items(&binding, &["spec", "validationActions"]).iter().any(|a| a == action);
        Some(BoundPolicy {
            policy: Arc::clone(policy),
            binding: object::meta(&binding, "name").to_owned(),
            constraints: Constraints::read(at(&binding, &["spec", "matchResources"]).unwrap_or(&Value::Null)),
            denies: does("Deny"),
            warns: does("Warn"),
        })
    };
    all(BINDINGS).filter_map(bind).collect()
}

/// What is wrong with a policy.
pub(crate) fn problems(policy: &Value) -> Vec<StatusCause> {
    AdmissionPolicy::read(policy).err().unwrap_or_default()
}

impl AdmissionPolicy {
    fn read(policy: &Value) -> Result<Self, Vec<StatusCause>> {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let mut causes = Vec::new();
        let mut compiled = |field: String, source: Option<&str>| {
            let found = Expression::compile(source.unwrap_or_default());
            found.map_err(|why| causes.push(StatusCause::invalid(field, &json!(source), &why))).ok()
        };
        let list = |field: &'static str| items(spec, &[field]).iter().enumerate();
        let conditions = list("matchConditions").filter_map(|(index, condition)| {
            compiled(format!("spec.matchConditions[{index}].expression"), text(condition, &["expression"]))
        });
        let conditions = conditions.collect();
        let variables = list("variables").filter_map(|(index, variable)| {
            let expression = compiled(format!("spec.variables[{index}].expression"), text(variable, &["expression"]))?;
            Some((text(variable, &["name"])?.to_owned(), expression))
        });
        let variables = variables.collect();
        let validations = list("validations").filter_map(|(index, validation)| {
            let field = |name: &str| format!("spec.validations[{index}].{name}");
            let expression = compiled(field("expression"), text(validation, &["expression"]))?;
            let message = text(validation, &["messageExpression"]);
            let message_expression = message.and_then(|message| compiled(field("messageExpression"), Some(message)));
            Some(Validation::new(validation, expression, message_expression))
        });
        let validations = validations.collect();
        if !causes.is_empty() {
            return Err(causes);
        }
        Ok(Self {
            name: object::meta(policy, "name").to_owned(),
            constraints: Constraints::read(spec.get("matchConstraints").unwrap_or(&Value::Null)),
            conditions,
            variables,
            validations,
            lenient: text(spec, &["failurePolicy"]) == Some("Ignore"),
        })
    }
}

impl Validation {
    fn new(validation: &Value, expression: Expression, message_expression: Option<Expression>) -> Self {
        let message = text(validation, &["message"]).map(|message| message.trim().to_owned());
        let message = message.unwrap_or_else(|| format!("failed expression: {}", expression.source()));
        let reason = match text(validation, &["reason"]) {
            Some("Unauthorized") => RefusalReason::Unauthorized,
            Some("Forbidden") => RefusalReason::Forbidden,
            Some("RequestEntityTooLarge") => RefusalReason::TooLarge,
            _ => RefusalReason::Invalid,
        };
        Self { expression, message, message_expression, reason }
    }

    /// Why it does not hold, if so.
    fn objection(&self, scope: &ExpressionScope, lenient: bool) -> Option<String> {
        match self.expression.holds(scope) {
            Ok(true) => None,
            Ok(false) => {
                let report = self.message_expression.as_ref().and_then(|message| message.text(scope).ok());
                // As in a cluster, a message of several lines is none.
                let report = report
                    .map(|report| report.trim().to_owned())
                    .filter(|report| !report.is_empty() && !report.contains('\n'));
                Some(report.unwrap_or_else(|| self.message.clone()))
            }
            Err(_) if lenient => None,
            Err(why) => Some(format!("expression '{}' resulted in error: {why}", self.expression.source())),
        }
    }
}

impl BoundPolicy {
    fn selects(&self, attempt: &Attempt<'_>) -> bool {
        self.policy.constraints.select(attempt) && self.constraints.select(attempt)
    }

    fn objections(&self, attempt: &Attempt<'_>) -> Vec<Objection<'_>> {
        let policy = &self.policy;
        let mut scope = attempt.scope();
        let object = |message, reason| Objection { message, reason, bound: self };
        for condition in &policy.conditions {
            match condition.holds(&scope) {
                Ok(true) => {}
                Ok(false) => return Vec::new(),
                Err(_) if policy.lenient => return Vec::new(),
                Err(why) => return vec![object(why, RefusalReason::Invalid)],
            }
        }
        for (name, expression) in &policy.variables {
            scope.define(name, expression);
        }
        let broken = policy
            .validations
            .iter()
            .filter_map(|validation| Some(object(validation.objection(&scope, policy.lenient)?, validation.reason)));
        broken.collect()
    }
}

impl Objection<'_> {
    fn sentence(&self, verb: &str) -> String {
        let (policy, binding) = (&self.bound.policy.name, &self.bound.binding);
        format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}' {verb}: {}", self.message)
    }

    fn refusal(&self, attempt: &Attempt<'_>) -> Refusal {
        let name = object::meta(attempt.new, "name");
        Refusal::denied(self.reason, attempt.served.label(), name, &self.sentence("denied request"))
    }
}

impl Attempt<'_> {
    fn operation(&self) -> &'static str {
        if self.old.is_some() { "UPDATE" } else { "CREATE" }
    }

    fn scope(&self) -> ExpressionScope {
        let resource = &self.served.resource;
        let version = &self.served.version().name;
        let mut scope = ExpressionScope::new();
        scope.name("object", self.new);
        scope.name("oldObject", self.old.unwrap_or(&Value::Null));
        scope.name("namespaceObject", self.namespace.unwrap_or(&Value::Null));
        scope.name(
            "request",
            &json!({
                "kind": {"group": resource.group, "version": version, "kind": resource.kind},
                "resource": {"group": resource.group, "version": version, "resource": resource.plural},
                "subResource": self.part.subresource(),
                "name": object::meta(self.new, "name"),
                "namespace": object::meta(self.new, "namespace"),
                "operation": self.operation(),
                "dryRun": self.dry_run,
            }),
        );
        scope
    }
}
