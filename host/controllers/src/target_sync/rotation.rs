//! Renewal of the token by which a TargetSync reaches the other cluster (C-375).

use data_encoding::BASE64;
use orangery_api::{annotation, marks::Marks as _};
use orangery_cluster::{Error, Subject};
use orangery_core::{
    plan::target_sync::{TOKEN_SECONDS, TokenLife, rotation_due},
    step::Step,
    yaml,
};
use orangery_proposal::ObjectKey;
use serde_json::{Value, json};

use super::{SyncCall, retry, secrets, source::ReferencedKubeconfig, stall};

impl SyncCall<'_> {
    /// Renews the token in the Secret of the TargetSync where that is wanted and due. As in the original, the only user of the
    /// kubeconfig has the name of the service account, and that is in the source namespace.
    pub(super) async fn rotate(&mut self, reference: &ReferencedKubeconfig) -> Step<()> {
        if self.sync.spec.token_rotation.as_ref().is_none_or(|rotation| !rotation.enabled) {
            return Ok(());
        }
        let mut kubeconfig = yaml::decode(&reference.text).unwrap_or(Value::Null);
        let Some((account, life)) = only_user(&kubeconfig) else {
            let message = "the token is not rotated: the kubeconfig that spec.secretRef names has to have exactly one user, whose name is \
                           that of a service account, and a token for it; correct it, or leave out spec.tokenRotation";
            return Err(stall("NotRotated", message.to_owned()));
        };
        let last = self.sync.status.as_ref().and_then(|status| status.last_token_rotation_time.as_ref());
        let is_asked = self.sync.annotation(annotation::ROTATE_TOKEN).is_some();
        if let Some(due) = rotation_due(last.map(|time| time.0), life, self.host.now().0).filter(|_| !is_asked) {
            self.outcome.is_due(due);
            return Ok(());
        }
        let issued = self.issued(Subject::ServiceAccount, &account, TOKEN_SECONDS, reference).await?;
        let issued = yaml::decode(&issued).ok();
        let token = issued.as_ref().and_then(|issued| issued.pointer("/users/0/user/token"));
        let Some(token) = token else {
            return Err(retry("NotRotated", format!("what was issued for service account {account} has no token")));
        };
        if let Some(user) = kubeconfig.pointer_mut("/users/0/user").and_then(Value::as_object_mut) {
            user.insert("token".to_owned(), token.clone());
        }
        let mut secret = Value::clone(&reference.secret);
        if let Some(data) = secret.get_mut("data").and_then(Value::as_object_mut) {
            data.insert(reference.key.clone(), json!(BASE64.encode(kubeconfig.to_string().as_bytes())));
        }
        let key = ObjectKey {
            api_version: "v1".into(),
            kind: "Secret".into(),
            namespace: Some(self.key.namespace.clone()),
            name: self.sync.spec.secret_ref.name.as_str().into(),
        };
        match self.here.replace(&secrets(), &key, &secret).await {
            Ok(_) => {
                self.outcome.rotated = true;
                Ok(())
            }
            Err(error @ (Error::Conflict { .. } | Error::Missing { .. })) => Err(retry("Conflict", error.to_string())),
            Err(error) => Err(error.into()),
        }
    }
}

/// The name of the only user of a kubeconfig, and how long its token says that it lives.
fn only_user(kubeconfig: &Value) -> Option<(String, Option<TokenLife>)> {
    match kubeconfig["users"].as_array().map(Vec::as_slice) {
        Some([user]) => {
            let token = user.pointer("/user/token")?.as_str()?;
            Some((user["name"].as_str()?.to_owned(), TokenLife::of(token)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_375_only_the_token_of_the_only_user_is_rotated() {
        let of = |users: Value| only_user(&json!({"users": users})).map(|(name, _)| name);
        let user = |name: &str| json!({"name": name, "user": {"token": "t"}});
        assert_eq!(of(json!([user("robot")])), Some("robot".to_owned()));
        let others = [
            json!([user("a"), user("b")]),
            json!([]),
            json!({}),
            json!([{"name": "robot", "user": {"client-key-data": "YQ=="}}]),
            json!([{"user": {"token": "t"}}]),
        ];
        for other in others {
            assert_eq!(of(other.clone()), None, "{other}");
        }
    }
}
