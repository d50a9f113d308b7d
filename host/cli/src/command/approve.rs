//! `orangery approve` and `orangery reject`: what somebody says of a Plan (C-311).

use std::collections::BTreeSet;

use clap::Args;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::{
    Api, Client, Resource as _, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use orangery_api::{
    job::Job as _,
    namespace_policy::POLICY_GROUP,
    plan::{Plan, PlanDecision, phase},
};
use orangery_core::name::{Kind, Namespace, ObjectName};
use serde_json::json;

use super::plan::object_lines;
use crate::{
    call::{CallError, CallSubject},
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
    exit::Exit,
    job_wait::AwaitedJob,
    listed,
    terminal::{Paint, Terminal},
    timeout::Timeout,
};

const HELP: &str = "\
Examples:
  orangery approve                       which Plans wait to be approved
  orangery approve web-x7k2-1a2b3c4d-1   show what a Plan writes, and approve it
  orangery approve web                   the same for all Plans that wait below the Installation web
  orangery approve web --dry-run         show them, and say nothing
  orangery approve web --wait            approve them, and wait for the end of the job
  orangery reject web-x7k2-1a2b3c4d-1 --reason 'after the freeze'

Where spec.approval of an Installation, or of a NamespacePolicy, is Required, a deploy item makes a Plan of what it is about to write,
and waits. What is approved is written exactly so. Where anything is otherwise by then, the Plan is stale: nothing is written, and
a new one comes. A rejected Plan fails its item. Values of Secrets are hidden.

Approving needs the verb approve on plans, as the ClusterRole RELEASE-plan-approver of the chart has it, and without the checks of the
chart the right to patch plans/status alone. With kubectl, where NAME is your name as kubectl auth whoami tells it:
  kubectl patch plan PLAN --subresource=status --type=merge \\
    -p '{\"status\":{\"approval\":{\"decision\":\"Approve\",\"planHash\":\"HASH\",\"by\":\"NAME\"}}}'
where HASH is spec.planHash of it.";

/// Plans listed at once.
const PAGE: u32 = 100;

/// Approves what deploy items are about to write, and shows it.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Approve {
    /// The Plan, or an Installation; without one, the Plans that wait are listed
    pub name: Option<ObjectName>,
    /// Show what is written, and approve nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Wait until the job of the Installation has ended, and show its tree on a terminal; what has to be approved next is waited for as well
    #[arg(long, requires = "name", conflicts_with = "dry_run")]
    pub wait: bool,
    /// With --wait: how long, such as 90s or 1h30m, or none
    #[arg(long, value_name = "DURATION", default_value = "10m", requires = "wait")]
    pub timeout: Timeout,
    /// Which ones.
    #[command(flatten)]
    pub shared: PlanFlags,
}

/// Rejects what deploy items are about to write: they fail.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Reject {
    /// The Plan, or an Installation
    pub name: ObjectName,
    /// Which ones.
    #[command(flatten)]
    pub shared: PlanFlags,
}

/// What both have.
#[derive(Clone, Debug, Args)]
pub struct PlanFlags {
    /// Why, for the status of the Plan
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub reason: String,
    /// Leave the content of objects out
    #[arg(long)]
    pub brief: bool,
    /// Which namespace.
    #[command(flatten)]
    pub scope: NamespaceScope,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Approve {
    /// Shows, and approves.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.shared.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let namespace = self.shared.scope.namespace(client);
        let Some(name) = &self.name else { return list(client, &namespace, terminal).await };
        let plans = found(client, &namespace, name).await?;
        let decision = (!self.dry_run).then_some(PlanDecision::Approve);
        let roots: BTreeSet<ObjectName> = plans.iter().map(|plan| plan.spec.installation.as_str().into()).collect();
        let told = self.shared.decide((client, &namespace), plans, decision, terminal).await?;
        match roots.into_iter().next().filter(|root| self.wait && !root.is_empty()) {
            None => Ok(told),
            Some(root) => {
                let job = AwaitedJob { client, namespace: &namespace, name: &root, timeout: &self.timeout };
                job.end(|installation| installation.job_finished(), terminal).await
            }
        }
    }
}

impl Reject {
    /// Shows, and rejects.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.shared.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let namespace = self.shared.scope.namespace(client);
        let plans = found(client, &namespace, &self.name).await?;
        self.shared.decide((client, &namespace), plans, Some(PlanDecision::Reject), terminal).await
    }
}

impl PlanFlags {
    /// Shows Plans, and says the same of each.
    async fn decide(
        &self,
        (client, namespace): (&Client, &Namespace),
        plans: Vec<Plan>,
        decision: Option<PlanDecision>,
        terminal: &mut Terminal,
    ) -> Result<Exit, CommandError> {
        let by = match decision {
            Some(_) => caller(client).await,
            None => String::new(),
        };
        for plan in plans {
            let name: ObjectName = plan.name_any().into();
            self.show(&plan, terminal)?;
            let Some(decision) = decision else { continue };
            let approval =
                json!({"decision": decision, "planHash": plan.spec.plan_hash, "by": by, "reason": self.reason});
            let patch = Patch::Merge(json!({"status": {"approval": approval}}));
            let api: Api<Plan> = Api::namespaced(client.clone(), namespace);
            let written = api.patch_status(&name, &PatchParams::default(), &patch).await;
            written.map_err(|error| refused(namespace, &name, error))?;
            let word = match decision {
                PlanDecision::Approve => "approved",
                PlanDecision::Reject => "rejected",
            };
            terminal.line(format_args!("plan {namespace}/{name}: {word}"))?;
        }
        Ok(Exit::Ok)
    }

    fn show(&self, plan: &Plan, terminal: &mut Terminal) -> Result<(), CommandError> {
        let name = plan.name_any();
        let planned = plan.spec.planned().map_err(|cause| CommandError::PlanContent { plan: name.clone(), cause })?;
        let ink = terminal.ink();
        let title = format!(
            "plan {name}, of deploy item {} by {}: {}",
            plan.spec.item.name, plan.spec.plugin, plan.spec.summary
        );
        terminal.painted(&ink.paint(Paint::Plain, &title))?;
        for (name, place) in planned.clusters.iter().filter(|_| !self.brief) {
            terminal.painted(&ink.paint(Paint::Dim, &format!("  {name}: {place}")))?;
        }
        for line in object_lines(&planned.objects, ink, self.brief)? {
            terminal.painted(&format!("  {line}"))?;
        }
        for note in &planned.notes {
            terminal.painted(&ink.paint(Paint::Bad, &format!("  ! {note}")))?;
        }
        Ok(())
    }
}

/// The Plan of a name, else those of an Installation of this name that nobody has said anything of.
async fn found(client: &Client, namespace: &Namespace, name: &ObjectName) -> Result<Vec<Plan>, CommandError> {
    let api: Api<Plan> = Api::namespaced(client.clone(), namespace);
    if let Some(plan) = api.get_opt(name).await.map_err(|error| refused(namespace, name, error))? {
        return match plan.phase() {
            phase::READY if plan.decision().is_none() => Ok(vec![plan]),
            phase => Err(CommandError::PlanEnded { plan: name.clone(), phase: phase.to_owned(), why: why(&plan) }),
        };
    }
    let mut open = open(client, namespace).await?;
    open.retain(|plan| plan.spec.installation == **name);
    if open.is_empty() {
        return Err(CommandError::NoPlan { namespace: namespace.clone(), name: name.clone() });
    }
    Ok(open)
}

/// Why a Plan does not count any more, where that is said.
fn why(plan: &Plan) -> String {
    let conditions = plan.status.iter().flat_map(|status| &status.conditions);
    conditions.map(|condition| format!(": {}", condition.message)).collect()
}

/// The Plans of a namespace of which nobody has said anything.
async fn open(client: &Client, namespace: &Namespace) -> Result<Vec<Plan>, CommandError> {
    let mut plans = Vec::new();
    let is_open =
        |plan: &Plan| plan.phase() == phase::READY && plan.decision().is_none() && !plan.spec.needs_no_approval;
    let take = |plan: Plan| plans.extend(Some(plan).filter(is_open));
    listed::each(client, Some(namespace), (POLICY_GROUP, PAGE), take).await?;
    Ok(plans)
}

async fn list(client: &Client, namespace: &Namespace, terminal: &mut Terminal) -> Result<Exit, CommandError> {
    let plans = open(client, namespace).await?;
    for plan in &plans {
        let (name, spec) = (plan.name_any(), &plan.spec);
        let root = if spec.installation.is_empty() { String::new() } else { format!(" of {}", spec.installation) };
        terminal.line(format_args!("{name}  deploy item {}{root}: {}", spec.item.name, spec.summary))?;
    }
    if plans.is_empty() {
        terminal.line(format_args!("no Plan in namespace {namespace} waits to be approved"))?;
    }
    Ok(Exit::Ok)
}

/// As whom the server knows whoever asks; empty where it does not say.
pub async fn caller(client: &Client) -> String {
    let api: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = api.create(&PostParams::default(), &SelfSubjectReview::default()).await.ok();
    let user = review.and_then(|review| review.status?.user_info?.username);
    user.unwrap_or_default()
}

fn refused(namespace: &Namespace, name: &ObjectName, error: kube::Error) -> CommandError {
    let kind = Kind::from(Plan::kind(&()).into_owned());
    CallError::of(CallSubject { kind: &kind, group: POLICY_GROUP, namespace, name }, error).into()
}
