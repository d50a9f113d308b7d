//! The identity of the server and of its clients: its certificate authority, its own certificate, its bearer token.
//!
//! With a data folder they are kept there, readable by the owner only, so that a kubeconfig outlives a restart.

use std::{fs, io, path::Path, sync::Arc};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    entropy, object,
    store::{DataFolderError, write_whole},
};

/// The audience of the server itself: of the tokens that it takes as credentials.
pub(crate) const AUDIENCE: &str = "https://kubernetes.default.svc";

/// The file in the data folder.
const FILE: &str = "identity.json";

/// Why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The certificates cannot be made.
    #[error("cannot make the server's certificates: {0}")]
    Certificates(#[from] rcgen::Error),
    /// The kept identity is not what this server writes.
    #[error("the file {file} is damaged ({why}); remove it, and the server makes new certificates and a new token")]
    Damaged {
        /// The file.
        file: std::path::PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The file cannot be read or written.
    #[error(transparent)]
    Folder(#[from] DataFolderError),
    /// TLS does not take the certificates.
    #[error("cannot use the server's certificates: {0}")]
    Tls(#[from] rustls::Error),
}

/// The server's identity. Its `Debug` shows nothing.
pub(crate) struct ServerIdentity {
    ca_pem: String,
    certificate: Vec<u8>,
    key: Vec<u8>,
    token: String,
}

impl std::fmt::Debug for ServerIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// The user that a request comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
}

impl User {
    /// The one who started the server.
    pub(crate) fn admin() -> Self {
        Self { name: "admin".to_owned(), groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()] }
    }

    /// The one of this name, with the groups that it has by its name.
    pub(crate) fn named(name: &str) -> Self {
        let account = name.strip_prefix("system:serviceaccount:").map(|_| "system:serviceaccounts".to_owned());
        let groups = account.into_iter().chain(["system:authenticated".to_owned()]).collect();
        Self { name: name.to_owned(), groups }
    }
}

impl ServerIdentity {
    /// A new identity, kept nowhere.
    pub(crate) fn fresh() -> Result<Self, IdentityError> {
        // A span that no clock is outside of: the server's may be injected, the client's is not ours.
        let validity = |params: &mut CertificateParams| {
            (params.not_before, params.not_after) =
                (rcgen::date_time_ymd(2000, 1, 1), rcgen::date_time_ymd(2100, 1, 1));
        };
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.distinguished_name.push(DnType::CommonName, "orangery");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::CrlSign];
        validity(&mut authority);
        let authority_key = KeyPair::generate()?;
        let ca_pem = authority.self_signed(&authority_key)?.pem();
        let names = ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut server = CertificateParams::new(names.map(str::to_owned).to_vec())?;
        server.distinguished_name.push(DnType::CommonName, "orangery-server");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.use_authority_key_identifier_extension = true;
        validity(&mut server);
        let server_key = KeyPair::generate()?;
        let certificate = server.signed_by(&server_key, &Issuer::new(authority, authority_key))?;
        Ok(Self {
            ca_pem,
            certificate: certificate.der().to_vec(),
            key: server_key.serialize_der(),
            token: entropy::secret(),
        })
    }

    /// The identity kept in a folder, made at the first start.
    pub(crate) fn in_folder(folder: &Path) -> Result<Self, IdentityError> {
        let file = folder.join(FILE);
        let failed = |source| DataFolderError::File { file: file.clone(), source };
        match fs::read(&file) {
            Ok(kept) => Self::read(&kept).map_err(|why| IdentityError::Damaged { file, why }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let identity = Self::fresh()?;
                write_whole(&file, identity.written().to_string().as_bytes()).map_err(failed)?;
                Ok(identity)
            }
            Err(source) => Err(failed(source).into()),
        }
    }

    fn written(&self) -> Value {
        let encode = |bytes: &[u8]| data_encoding::BASE64.encode(bytes);
        json!({"ca": self.ca_pem, "certificate": encode(&self.certificate), "key": encode(&self.key), "token": self.token})
    }

    fn read(kept: &[u8]) -> Result<Self, String> {
        let kept: Value = serde_json::from_slice(kept).map_err(|error| error.to_string())?;
        let field = |name: &str| object::text(&kept, &[name]).ok_or_else(|| format!("no field {name}"));
        let bytes = |name: &str| {
            let text = field(name)?;
            data_encoding::BASE64.decode(text.as_bytes()).map_err(|error| format!("{name}: {error}"))
        };
        let (ca_pem, token) = (field("ca")?.to_owned(), field("token")?.to_owned());
        Ok(Self { ca_pem, certificate: bytes("certificate")?, key: bytes("key")?, token })
    }

    pub(crate) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// The TLS side of the server: its certificate, and both versions of HTTP.
    pub(crate) fn tls(&self) -> Result<Arc<rustls::ServerConfig>, IdentityError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.clone()));
        let chain = vec![CertificateDer::from(self.certificate.clone())];
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// A token for a service account: a JSON Web Token signed with a key derived from the server's own token.
    pub(crate) fn account_token(
        &self,
        (namespace, account): (&str, &str),
        audiences: &[String],
        expires: Option<Timestamp>,
    ) -> String {
        let encode = |value: &Value| data_encoding::BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        let mut claims = json!({
            "iss": AUDIENCE, "aud": audiences,
            "sub": format!("system:serviceaccount:{namespace}:{account}"),
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": account}},
        });
        if let Some(expires) = expires {
            object::set(&mut claims, &["exp"], json!(expires.as_second()));
        }
        let signed = format!("{}.{}", encode(&json!({"alg": "HS256", "typ": "JWT"})), encode(&claims));
        let signature = data_encoding::BASE64URL_NOPAD.encode(&self.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    /// The user that bears a token which was made for this server; `None` for any other token.
    pub(crate) fn user(&self, token: &str, now: Timestamp) -> Option<User> {
        self.user_for(token, &[AUDIENCE.to_owned()], now).map(|(user, _)| user)
    }

    /// The user that bears a token, and for which of these audiences it was made; `None` where it is unknown or was made
    /// for none of them.
    pub(crate) fn user_for(&self, token: &str, audiences: &[String], now: Timestamp) -> Option<(User, Vec<String>)> {
        let (user, made_for) = self.bearer(token, now)?;
        let accepted: Vec<String> = made_for.into_iter().filter(|audience| audiences.contains(audience)).collect();
        (!accepted.is_empty()).then_some((user, accepted))
    }

    /// The user that bears a token, and the audiences that it was made for.
    fn bearer(&self, token: &str, now: Timestamp) -> Option<(User, Vec<String>)> {
        if same(token.as_bytes(), self.token.as_bytes()) {
            return Some((User::admin(), vec![AUDIENCE.to_owned()]));
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let signature = data_encoding::BASE64URL_NOPAD.decode(signature.as_bytes()).ok()?;
        if !same(&signature, &self.sign(signed.as_bytes())) {
            return None;
        }
        let (_, claims) = signed.split_once('.')?;
        let claims = data_encoding::BASE64URL_NOPAD.decode(claims.as_bytes()).ok()?;
        let claims: Value = serde_json::from_slice(&claims).ok()?;
        if claims.get("exp").and_then(Value::as_i64).is_some_and(|expires| expires <= now.as_second()) {
            return None;
        }
        let name = object::text(&claims, &["sub"])?;
        let made_for = claims.get("aud").and_then(Value::as_array).into_iter().flatten();
        let made_for = made_for.filter_map(Value::as_str).map(str::to_owned).collect();
        Some((User::named(name), made_for))
    }

    /// HMAC-SHA256 (RFC 2104) under the hash of the token, which fits into one block.
    fn sign(&self, message: &[u8]) -> [u8; 32] {
        let secret: [u8; 32] = Sha256::digest(self.token.as_bytes()).into();
        let pad = |with: u8| {
            let mut block = [with; 64];
            block.iter_mut().zip(secret).for_each(|(byte, secret)| *byte ^= secret);
            block
        };
        let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message).finalize();
        Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into()
    }
}

/// Compares secrets in a time that does not tell where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_until_it_expires_or_is_changed() {
        let at = |second| Some(Timestamp::from_second(second).unwrap());
        let now = at(1_000_000).unwrap();
        let identity = ServerIdentity::fresh().unwrap();
        let token = identity.account_token(("ns", "robot"), &[AUDIENCE.to_owned()], at(1_000_010));
        let name = |token: &str, now| identity.user(token, now).map(|user| user.name);
        assert_eq!(name(&token, now).as_deref(), Some("system:serviceaccount:ns:robot"));
        assert_eq!(name(&token, at(1_000_010).unwrap()), None);
        assert_eq!(name(&format!("{token}x"), now), None);
        assert_eq!(name(identity.token(), now).as_deref(), Some("admin"));
        let kept = ServerIdentity::read(identity.written().to_string().as_bytes()).unwrap();
        assert_eq!((kept.token(), kept.ca_pem()), (identity.token(), identity.ca_pem()));
    }

    #[test]
    fn a_token_for_a_foreign_audience_is_good_for_nobody_else() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let identity = ServerIdentity::fresh().unwrap();
        let all = |audiences: &[&str]| audiences.iter().map(|audience| (*audience).to_owned()).collect::<Vec<_>>();
        let foreign = identity.account_token(("ns", "robot"), &all(&["vault"]), None);
        let both = identity.account_token(("ns", "robot"), &all(&["vault", AUDIENCE]), None);
        let accepted = |token: &str, audiences: &[&str]| {
            identity.user_for(token, &all(audiences), now).map(|(user, accepted)| (user.name, accepted))
        };
        let robot = |audiences: &[&str]| Some(("system:serviceaccount:ns:robot".to_owned(), all(audiences)));
        assert_eq!(identity.user(&foreign, now), None);
        assert_eq!(identity.user(&both, now).map(|user| user.name).as_deref(), Some("system:serviceaccount:ns:robot"));
        assert_eq!(accepted(&foreign, &["vault", "other"]), robot(&["vault"]));
        assert_eq!(accepted(&foreign, &["other"]), None);
        assert_eq!(accepted(&both, &["vault", AUDIENCE]), robot(&["vault", AUDIENCE]));
        assert_eq!(accepted(identity.token(), &["vault"]), None);
    }
}
