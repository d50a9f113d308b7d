//! The credentials of a Context, as the cluster has them.

use std::sync::Arc;

use orangery_core::error::{Code, Fault};
use orangery_ocm::{Credentials, MOST_CREDENTIAL_BYTES, Secret};

use super::{DockerConfig, Keyring, OcmConfig};

const DOCKER_CONFIG: &str = ".dockerconfigjson";
const OCM_CREDENTIALS: &str = ".ocmcredentialconfig";

impl Keyring {
    /// Reads `registryPullSecrets` and `ocmConfig` of a Context, in this order; the second answer says where the Context
    /// looks for component versions that name no repository. A Secret with neither of the two keys is a fault: it would
    /// be tried in vain. What is read has a sum (C-280).
    pub fn of_context(credentials: &Credentials) -> Result<(Self, OcmConfig), Fault> {
        let allowed = Arc::new(credentials.allowed.clone());
        let keyring = Self { allowed, tenant: credentials.namespace.clone(), ..Self::default() };
        let mut keyring = keyring.with_chart_repositories(&credentials.chart_repositories);
        for (name, data) in &credentials.pull_secrets {
            let (docker, ocm) = (data.get(DOCKER_CONFIG), data.get(OCM_CREDENTIALS));
            let origin = format!("the Secret {name}");
            if docker.is_none() && ocm.is_none() {
                let message = format!(
                    "{origin} is named in registryPullSecrets and has neither the key {DOCKER_CONFIG} nor \
                     {OCM_CREDENTIALS}; make it with `kubectl create secret docker-registry`"
                );
                return Err(Fault::invalid(Code::ConfigurationProblem, message));
            }
            if let Some(content) = docker {
                keyring = keyring.with_docker_config(DockerConfig::read(text(content, &origin)?, &origin)?);
                keyring.fits(&origin)?;
            }
            if let Some(content) = ocm {
                keyring = keyring.with_ocm_config(&OcmConfig::read_credentials(text(content, &origin)?, &origin)?);
                keyring.fits(&origin)?;
            }
        }
        let Some((name, content)) = &credentials.ocm_config else { return Ok((keyring, OcmConfig::default())) };
        let origin = format!("the ConfigMap {name}");
        let content = text(content, &origin)?;
        // An empty one is there to be filled; the original takes it as none.
        let config = if content.is_empty() { OcmConfig::default() } else { OcmConfig::read(content, &origin)? };
        let keyring = keyring.with_ocm_config(&config);
        keyring.fits(&origin)?;
        Ok((keyring, config))
    }

    /// Whether it has no more than it may, those of `origin` included.
    fn fits(&self, origin: &str) -> Result<(), Fault> {
        if self.memory() <= MOST_CREDENTIAL_BYTES {
            return Ok(());
        }
        let message = format!(
            "the credentials of the Context take more than {MOST_CREDENTIAL_BYTES} bytes of memory with those in {origin}; name \
             fewer in the Context"
        );
        Err(Fault::invalid(Code::LimitExceeded, message))
    }
}

fn text<'a>(content: &'a Secret, origin: &str) -> Result<&'a str, Fault> {
    std::str::from_utf8(&content.0).map_err(|_| {
        let message = format!("the registry credentials in {origin} are no UTF-8; write them again");
        Fault::invalid(Code::ConfigurationProblem, message)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn secret(name: &str, key: &str, content: &[u8]) -> (String, BTreeMap<String, Secret>) {
        (name.to_owned(), BTreeMap::from([(key.to_owned(), Secret(content.to_vec()))]))
    }

    fn ocm(kind: &str, host: &str) -> String {
        let identity = json!({"type": "OCIRegistry", "hostname": host});
        let credentials = json!([{"type": "Credentials", "properties": {"username": "u", "password": "p"}}]);
        let consumer = json!({"identity": identity, "credentials": credentials});
        json!({"type": kind, "consumers": [consumer], "resolvers": [{"repository": "r.example"}]}).to_string()
    }

    #[test]
    fn secrets_come_before_the_ocm_configuration() {
        let docker = json!({"auths": {"r.example": {"username": "u", "password": "p"}}}).to_string();
        let consumers = ocm("credentials.config.ocm.software", "r.example");
        let credentials = Credentials {
            pull_secrets: vec![
                secret("a", DOCKER_CONFIG, docker.as_bytes()),
                secret("b", OCM_CREDENTIALS, consumers.as_bytes()),
            ],
            ocm_config: Some(("c".to_owned(), Secret(consumers.clone().into_bytes()))),
            ..Credentials::default()
        };
        let (keyring, config) = Keyring::of_context(&credentials).expect("credentials");
        let repository = "r.example/x".parse().expect("a repository");
        let origins: Vec<_> = keyring.matching(&repository).iter().map(|key| key.origin.to_string()).collect();
        assert_eq!(origins, ["the Secret a", "the Secret b", "the ConfigMap c"]);
        assert!(config.resolvers().is_empty());
        let configured =
            |content| Credentials { ocm_config: Some(("c".to_owned(), content)), ..Credentials::default() };
        let empty = configured(Secret::default());
        let (none, config) = Keyring::of_context(&empty).expect("no credentials");
        assert_eq!((none.matching(&repository).len(), config.resolvers()), (0, &[][..]));
        let resolvers = ocm("ocm.config.ocm.software", "").into_bytes();
        let found = configured(Secret(resolvers));
        assert_eq!(Keyring::of_context(&found).expect("resolvers").1.resolvers().len(), 1);
    }

    #[test]
    fn c_280_limits_registry_the_credentials_of_a_context_have_a_sum() {
        let long = |host: &str| {
            let docker = json!({"auths": {host: {"username": "u", "password": "p".repeat(600 << 10)}}}).to_string();
            secret(host, DOCKER_CONFIG, docker.as_bytes())
        };
        let of = |pull_secrets| Keyring::of_context(&Credentials { pull_secrets, ..Credentials::default() }).map(drop);
        assert_eq!(of(vec![long("a.example"), long("b.example"), long("c.example")]), Ok(()));
        let four = ["a.example", "b.example", "c.example", "d.example"].map(long).to_vec();
        let why = "the credentials of the Context take more than 2097152 bytes of memory with those in the Secret d.example; name \
                   fewer in the Context";
        assert_eq!(of(four).map_err(|fault| fault.to_string()), Err(why.to_owned()));
    }

    #[test]
    fn a_secret_that_would_be_tried_in_vain_is_told() {
        let broken = |pull_secret| {
            let credentials = Credentials { pull_secrets: vec![pull_secret], ..Credentials::default() };
            Keyring::of_context(&credentials).expect_err("unusable").to_string()
        };
        let error = broken(secret("a", "password", b"hunter2"));
        assert!(error.starts_with("the Secret a is named in registryPullSecrets and has neither the key"), "{error}");
        let error = broken(secret("a", DOCKER_CONFIG, b"\xffhunter2"));
        assert_eq!(error, "the registry credentials in the Secret a are no UTF-8; write them again");
        let error = broken(secret("a", DOCKER_CONFIG, b"hunter2"));
        assert!(error.contains("the Secret a") && !error.contains("hunter"), "{error}");
    }
}
