//! What the objects of a namespace may do: the policies of administrators ([`PolicySpec`]), which of them count for a namespace
//! ([`PolicySet`]), and the check of everything that is about to be read or written ([`EffectivePolicy::check`]).
//!
//! Every line of a policy is one field of [`PolicySpec`]. A field that a policy leaves out is that of its [`Profile`].

mod acting;
mod builtin;
mod effective;
mod egress;
mod exempted;
mod exemption;
mod explain;
mod named_expression;
mod networks;
mod pattern;
mod plan_rule;
mod planned;
mod profile;
mod quota;
mod read;
mod recording;
mod request;
mod selector;
mod set;
mod sources;
mod spec;
mod trust;
mod violation;

pub use crate::{
    effective::{EffectivePolicy, FoundKey},
    egress::{Cidr, EgressRules},
    exempted::ApprovalExemptions,
    exemption::ApprovalExemption,
    explain::ExplainedLine,
    pattern::Pattern,
    plan_rule::{BrokenRule, PlanRule, PlanRules, RuleAction, RuleComponent, RuleScope},
    planned::ScopedRule,
    profile::Profile,
    quota::{Quota, QuotaKind, ReconcileInterval},
    read::{Policy, PolicyOrigin},
    request::{PolicyRequest, PolicySubject},
    selector::{LabelOperator, LabelRequirement, LabelSelector, NamespaceSelector},
    set::PolicySet,
    spec::{
        Approval, BlueprintRules, DataObjectRules, HostClusterRules, ItemRules, ItemTypeRule, KindLists, KindPattern,
        PolicySpec, Quotas, RecordingRules, SecretDataRule, SourceRules, TargetRules,
    },
    trust::{KeylessRule, SignatureRules, TrustedKey, TrustedSigner},
    violation::Violation,
};
