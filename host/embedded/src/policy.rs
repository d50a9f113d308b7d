//! Admission policies: rules in CEL that a cluster keeps as objects. Mutating ones change what is written, and validating ones are
//! what every write is held against then.
//!
//! What is carried out: creates, updates and deletions, selectors, match conditions, variables, messages; the actions Deny and
//! Warn; changes by ApplyConfiguration and JSONPatch, once for each write. Parameters and audit annotations are not. What an expression may cost is bounded, though not as a
//! cluster counts it.

mod constraints;
mod mutation;

use std::sync::{Arc, PoisonError, RwLock};

use orangery_expression::{Expression, ExpressionScope};
use serde_json::{Value, json};
use tokio::sync::watch;

use self::{
    constraints::Constraints,
    mutation::{Mutation, mutate},
};
use crate::{
    object::{self, at, items, text},
    off_the_executor::off_the_executor,
    operation::ObjectPart,
    patch::Shape,
    refusal::{Refusal, RefusalReason, StatusCause},
    resource::Served,
    store::ObjectStore,
};

/// The kinds of the policies.
pub(crate) const KINDS: [&str; 2] = ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"];
/// Where they are kept, and their bindings.
const VALIDATING: [&str; 2] = [
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
];
const MUTATING: [&str; 2] = [
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
];

/// A write that is about to happen.
#[derive(Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub(crate) served: &'a Served,
    pub(crate) part: ObjectPart,
    /// The namespace that the object lies in; none for objects of the cluster.
    pub(crate) namespace: Option<&'a Value>,
    /// None for a create.
    pub(crate) old: Option<&'a Value>,
    /// Null for a deletion.
    pub(crate) new: &'a Value,
    pub(crate) dry_run: bool,
}

/// The policies of a cluster: read anew when one of them, or a binding, has changed.
#[derive(Debug)]
pub(crate) struct Policies {
    /// Of the policies and of the bindings, validating ones first.
    bells: [watch::Receiver<u64>; 4],
    /// What was read last, and what the bells said then. Replaced as a whole.
    read: RwLock<Option<PolicyIndex>>,
}

type PolicyIndex = ([u64; 4], Arc<BoundPolicies>);

/// The policies that are bound.
#[derive(Debug)]
struct BoundPolicies {
    validating: Vec<BoundPolicy>,
    mutating: Vec<BoundPolicy>,
}

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
    /// Its kind and its name, as sentences have them.
    title: String,
    constraints: Constraints,
    conditions: Vec<Expression>,
    variables: Vec<(String, Expression)>,
    validations: Vec<Validation>,
    mutations: Vec<Mutation>,
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
        let [policies, bindings] = VALIDATING.map(|collection| store.bell(collection));
        let [mutating, of_mutating] = MUTATING.map(|collection| store.bell(collection));
        Self { bells: [policies, bindings, mutating, of_mutating], read: RwLock::default() }
    }

    /// Refuses what a policy denies, and answers the warnings of the others.
    pub(crate) fn classify(&self, store: &ObjectStore, attempt: &Attempt<'_>) -> Result<Vec<String>, Refusal> {
        let current = self.current(store);
        let selected: Vec<&BoundPolicy> = current.validating.iter().filter(|bound| bound.selects(attempt)).collect();
        // Their authors chose how long that takes.
        if selected.is_empty() { Ok(Vec::new()) } else { off_the_executor(|| classify(&selected, attempt)) }
    }

    /// Whether there are policies that make something else of what is written.
    pub(crate) fn mutates(&self, store: &ObjectStore) -> bool {
        !self.current(store).mutating.is_empty()
    }

    /// What policies make of an object that is written; `None` where they leave it as it is.
    pub(crate) fn mutate(
        &self,
        store: &ObjectStore,
        attempt: &Attempt<'_>,
        shape: Shape<'_>,
    ) -> Result<Option<Value>, Refusal> {
        let current = self.current(store);
        let selected: Vec<&BoundPolicy> = current.mutating.iter().filter(|bound| bound.selects(attempt)).collect();
        if selected.is_empty() { Ok(None) } else { off_the_executor(|| mutate(&selected, attempt, shape)) }
    }

    fn current(&self, store: &ObjectStore) -> Arc<BoundPolicies> {
        let rung = self.bells.each_ref().map(|bell| *bell.borrow());
        let kept = self.read.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, bound)) = kept.filter(|(then, _)| *then == rung) {
            return bound;
        }
        let bound = off_the_executor(|| {
            let [validating, mutating] = [VALIDATING, MUTATING].map(|collections| read(store, collections));
            Arc::new(BoundPolicies { validating, mutating })
        });
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

/// Those that are bound, in the order of their bindings' names.
fn read(store: &ObjectStore, [policies, bindings]: [&str; 2]) -> Vec<BoundPolicy> {
    let all = |collection: &str| store.list(collection, None, None).entries.into_iter().map(|(_, entry)| entry.value());
    // One that cannot be read was refused when it was written.
    let policies: Vec<Arc<AdmissionPolicy>> =
        all(policies).filter_map(|policy| AdmissionPolicy::read(&policy).ok()).map(Arc::new).collect();
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
    all(bindings).filter_map(bind).collect()
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
        let mut mutations = Vec::new();
        for (index, mutation) in list("mutations") {
            match Mutation::read(mutation, &format!("spec.mutations[{index}]")) {
                Ok(mutation) => mutations.push(mutation),
                Err(cause) => causes.push(cause),
            }
        }
        if !causes.is_empty() {
            return Err(causes);
        }
        Ok(Self {
            title: format!("{} '{}'", text(policy, &["kind"]).unwrap_or(KINDS[0]), object::meta(policy, "name")),
            name: object::meta(policy, "name").to_owned(),
            constraints: Constraints::read(spec.get("matchConstraints").unwrap_or(&Value::Null)),
            conditions,
            variables,
            validations,
            mutations,
            lenient: text(spec, &["failurePolicy"]) == Some("Ignore"),
        })
    }
}

impl AdmissionPolicy {
    /// What its expressions can name.
    fn scope(&self, attempt: &Attempt<'_>) -> ExpressionScope {
        let mut scope = attempt.scope();
        for (name, expression) in &self.variables {
            scope.define(name, expression);
        }
        scope
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
        let scope = attempt.scope();
        let object = |message, reason| Objection { message, reason, bound: self };
        for condition in &policy.conditions {
            match condition.holds(&scope) {
                Ok(true) => {}
                Ok(false) => return Vec::new(),
                Err(_) if policy.lenient => return Vec::new(),
                Err(why) => return vec![object(why, RefusalReason::Invalid)],
            }
        }
        let scope = policy.scope(attempt);
        let broken = policy
            .validations
            .iter()
            .filter_map(|validation| Some(object(validation.objection(&scope, policy.lenient)?, validation.reason)));
        broken.collect()
    }
}

impl Objection<'_> {
    fn sentence(&self, verb: &str) -> String {
        let (policy, binding) = (&self.bound.policy.title, &self.bound.binding);
        format!("{policy} with binding '{binding}' {verb}: {}", self.message)
    }

    fn refusal(&self, attempt: &Attempt<'_>) -> Refusal {
        let name = object::meta(attempt.object(), "name");
        Refusal::denied(self.reason, attempt.served.label(), name, &self.sentence("denied request"))
    }
}

impl Attempt<'_> {
    fn operation(&self) -> &'static str {
        match self.old {
            None => "CREATE",
            Some(_) if self.new.is_null() => "DELETE",
            Some(_) => "UPDATE",
        }
    }

    /// What it is about: the new form, and of a deletion the old one.
    fn object(&self) -> &Value {
        self.old.filter(|_| self.new.is_null()).unwrap_or(self.new)
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
                "name": object::meta(self.object(), "name"),
                "namespace": object::meta(self.object(), "namespace"),
                "operation": self.operation(),
                "dryRun": self.dry_run,
            }),
        );
        scope
    }
}
