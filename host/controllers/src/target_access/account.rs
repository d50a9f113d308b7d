//! Targets that name a service account of this cluster where others have a kubeconfig: `selfConfig` for this cluster, and
//! `oidcConfig` for a cluster that trusts this one (`docs/wire.md` §1.4).

use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Api, ResourceExt, api::PostParams};
use orangery_api::annotation::ALLOW_TARGETS;
use orangery_cluster::in_the_name_of;
use orangery_core::{
    error::{Code, Failure},
    lenient,
    name::{Namespace, is_path_segment},
    step::{Halt, Step},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::stall;
use crate::{
    account_tokens::{OwnAddress, Token, TokenKey},
    acting_account::{ServiceAccountRef, TargetAccounts, acting_account},
    controller_context::ControllerContext,
    object_access::get,
    target_kubeconfig::TargetKubeconfig,
};

/// How long a token is good that a target does not say: a day.
const USUAL_SECONDS: i64 = 86_400;

/// How long a token is good that only tells the audiences of this cluster and is sent to nobody: the least there is.
const LEAST_SECONDS: i64 = 600;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AccountForm {
    server: String,
    ca_data: String,
    service_account: NameForm,
    audience: Vec<String>,
    expiration_seconds: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NameForm {
    name: String,
}

/// The kubeconfig that a target's content stands for, `None` where it names no account. `named` is the target in messages.
pub(super) async fn kubeconfig(
    host: &ControllerContext,
    namespace: &Namespace,
    named: &str,
    content: &Value,
) -> Step<Option<TargetKubeconfig>> {
    let config = |key: &str| content.get(key).filter(|value| !value.is_null());
    let (key, config) = match (config("oidcConfig"), config("selfConfig")) {
        (Some(config), _) => ("oidcConfig", config),
        (None, Some(config)) => ("selfConfig", config),
        (None, None) => return Ok(None),
    };
    let invalid = |why: String| stall("InvalidTarget", format!("{named} cannot be used: {key} {why}"));
    let form: AccountForm = lenient::decode(config).map_err(|error| invalid(format!("cannot be read: {error}")))?;
    let account = form.service_account.name;
    if !is_path_segment(&account) {
        return Err(invalid("needs the name of a service account in serviceAccount.name".to_owned()));
    }
    let own = key == "selfConfig";
    let account = ServiceAccountRef { namespace: namespace.clone(), name: account.into() };
    let by = allowed(host, named, &account).await?;
    let address = match &host.own_address {
        Some(address) if own => address.clone(),
        None if own => return Err(invalid("is for an operator that runs against a cluster by its address".to_owned())),
        _ if form.server.is_empty() => return Err(invalid("needs the address of the cluster in server".to_owned())),
        _ if !is_encrypted(&form.server) => {
            return Err(invalid("needs a server that begins with https://: a token is sent there".to_owned()));
        }
        _ => OwnAddress { server: form.server, authority: Some(form.ca_data).filter(|data| !data.is_empty()) },
    };
    let server = |address: &OwnAddress| address.server.trim_end_matches('/').to_ascii_lowercase();
    if host.own_address.as_ref().is_none_or(|own| server(own) != server(&address)) {
        let named_account = TargetAccount { host, named, account: &account, by: by.as_ref() };
        if let Some(why) = unsafe_audience(&form.audience, || named_account.audiences()).await? {
            return Err(invalid(why));
        }
    }
    let wanted = TokenKey {
        account,
        by,
        audiences: if own { Vec::new() } else { form.audience },
        seconds: form.expiration_seconds.unwrap_or(USUAL_SECONDS),
    };
    let text = with_token(&address, &token(host, named, wanted).await?);
    Ok(Some(TargetKubeconfig { text, is_own: own, source: None }))
}

/// Whether only the server itself reads what is sent to this address.
fn is_encrypted(server: &str) -> bool {
    server.split_once("://").is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("https"))
}

/// Why these audiences may not be asked for a server elsewhere: without one, or with one of this cluster's own API server,
/// the token would be a credential for this cluster in the hands of that server. `own` tells the audiences of this cluster.
async fn unsafe_audience<'a, F>(asked: &[String], own: impl FnOnce() -> F) -> Step<Option<String>>
where
    F: Future<Output = Step<&'a [String]>>,
{
    if asked.iter().all(String::is_empty) {
        let why = "needs an audience, since the server is not this cluster's own: the token without one would be good for \
                   this cluster; name in audience what the server expects of its tokens";
        return Ok(Some(why.to_owned()));
    }
    let own = own().await?;
    let shared = asked.iter().find(|audience| audience.is_empty() || own.contains(audience));
    Ok(shared.map(|audience| {
        format!(
            "asks for the audience {audience:?} of this cluster's own API server, which no other server may have; name in \
             audience what the server expects of its tokens"
        )
    }))
}

/// A service account that a target names.
struct TargetAccount<'a> {
    host: &'a ControllerContext,
    named: &'a str,
    account: &'a ServiceAccountRef,
    by: Option<&'a ServiceAccountRef>,
}

/// As whom the token of an account is asked for, where Targets may name that account; `None` as the operator. What only its
/// namespace knows is asked each time, so that what is taken back counts at once.
///
/// Whoever wrote the Target is not known, so it is the namespace that has to have the right: the account that the operator acts
/// as for it asks for the token, and the API server says whether it may.
async fn allowed(
    host: &ControllerContext,
    named: &str,
    account: &ServiceAccountRef,
) -> Step<Option<ServiceAccountRef>> {
    if host.accounts.of_targets == TargetAccounts::Any {
        return Ok(None);
    }
    let Some(found) = get::<ServiceAccount>(&host.client, &account.namespace, &account.name).await? else {
        return Err(absent(named, account));
    };
    if found.annotations().get(ALLOW_TARGETS).map(String::as_str) != Some("true") {
        let message = format!(
            "{named} names {account}, which Targets may not use; annotate it with {ALLOW_TARGETS}: \"true\" if whoever may \
             write Targets in {} may act as this account",
            account.namespace
        );
        return Err(not_allowed(message));
    }
    acting_account((&host.accounts, &host.policies), &account.namespace)
}

fn not_allowed(message: String) -> Halt {
    Halt::Stall(Failure::new("ResolveTarget", "ServiceAccountNotAllowed", message).with_code(Code::Forbidden))
}

fn absent(named: &str, account: &ServiceAccountRef) -> Halt {
    stall("InvalidTarget", format!("{named} names {account}, which does not exist; create it"))
}

impl<'a> TargetAccount<'a> {
    /// The audiences of this cluster's own API server: those of a token for which none were asked.
    async fn audiences(self) -> Step<&'a [String]> {
        let Self { host, named, account, by } = self;
        if let Some(known) = host.tokens.own_audiences() {
            return Ok(known);
        }
        let (account, by) = (account.clone(), by.cloned());
        let wanted = TokenKey { account, by, audiences: Vec::new(), seconds: LEAST_SECONDS };
        let audiences = request(host, named, &wanted).await?.spec.audiences;
        if audiences.is_empty() {
            let message = format!(
                "{named} cannot be used: the API server does not say for which audiences its own tokens are, so none can be \
                 sent to another server"
            );
            return Err(stall("InvalidTarget", message));
        }
        Ok(host.tokens.keep_own_audiences(audiences))
    }
}

/// Asks for a token.
async fn request(host: &ControllerContext, named: &str, wanted: &TokenKey) -> Step<TokenRequest> {
    let client = match &wanted.by {
        Some(by) => in_the_name_of(&by.user(), &host.client).map_err(|_invalid| {
            stall("NoServiceAccount", format!("the operator cannot act as {by}, whose name no API server knows"))
        })?,
        None => host.client.clone(),
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(client, &wanted.account.namespace);
    let request = TokenRequest {
        spec: TokenRequestSpec {
            audiences: wanted.audiences.clone(),
            expiration_seconds: Some(wanted.seconds),
            ..TokenRequestSpec::default()
        },
        ..TokenRequest::default()
    };
    let answer = accounts.create_token_request(&wanted.account.name, &PostParams::default(), &request).await;
    answer.map_err(|error| refused(named, wanted, error))
}

async fn token(host: &ControllerContext, named: &str, wanted: TokenKey) -> Step<String> {
    let now = host.clock.now();
    if let Some(token) = host.tokens.find(&wanted, now) {
        return Ok(token);
    }
    let answer = request(host, named, &wanted).await?;
    let Some(status) = answer.status else {
        let message = format!("{named} names {}, for which the API server answered no token", wanted.account);
        return Err(Halt::Retry(Failure::new("ResolveTarget", "TokenUnavailable", message)));
    };
    let life = status.expiration_timestamp.0.duration_since(now);
    let renew = now.checked_add(life / 5 * 4).unwrap_or(now);
    host.tokens.keep(wanted, Token { text: status.token.clone(), renew }, now);
    Ok(status.token)
}

fn refused(named: &str, wanted: &TokenKey, error: kube::Error) -> Halt {
    let account = &wanted.account;
    let of = |status: u16| matches!(&error, kube::Error::Api(answer) if answer.code == status);
    if of(404) {
        return absent(named, account);
    }
    if let (true, Some(by)) = (of(403), &wanted.by) {
        return not_allowed(format!(
            "{named} names {account}, for which {by} may not ask a token, as which the operator acts for the namespace; allow \
             it to create serviceaccounts/token of {}",
            account.name
        ));
    }
    if of(403) {
        let message = format!(
            "{named} names {account}, for which the operator may not ask a token; allow it to create serviceaccounts/token"
        );
        return stall("InvalidTarget", message);
    }
    if of(422) {
        return stall("InvalidTarget", format!("{named} names {account}, whose token is refused: {error}"));
    }
    let message = format!("{named} names {account}, whose token could not be had: {error}");
    Halt::Retry(Failure::new("ResolveTarget", "TokenUnavailable", message).with_code(Code::InternalProblem))
}

/// JSON is YAML: every reader of kubeconfigs takes it.
fn with_token(address: &OwnAddress, token: &str) -> String {
    let mut cluster = json!({"server": address.server});
    if let (Some(authority), Some(cluster)) = (&address.authority, cluster.as_object_mut()) {
        cluster.insert("certificate-authority-data".to_owned(), Value::String(authority.clone()));
    }
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "target",
        "clusters": [{"name": "target", "cluster": cluster}],
        "contexts": [{"name": "target", "context": {"cluster": "target", "user": "target"}}],
        "users": [{"name": "target", "user": {"token": token}}],
    })
    .to_string()
}

#[cfg(test)]
mod tests;
