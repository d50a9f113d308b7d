//! A Sigstore of a test: an authority, a log of certificates and a log of signatures, and bundles that they stand behind.

use data_encoding::{BASE64, HEXLOWER};
use orangery_ocm::{KeylessSigner, SignerIdentity};
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber, SigningKey, date_time_ymd,
};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::keyless::{BUNDLE, der};

/// When signatures are made: the certificate is of the same day.
pub(in crate::keyless) const NOON: i64 = 1_767_268_800;
pub(in crate::keyless) const IDENTITY: &str = "https://ci.example.org/acme/app/release.yml@refs/tags/v1";
pub(in crate::keyless) const ISSUER: &str = "https://issuer.example.org";
/// The extension of a certificate that names who knows its identity.
pub(in crate::keyless) const ISSUED_BY: &[u64] = &[1, 3, 6, 1, 4, 1, 57264, 1, 8];

/// What a bundle is made of.
pub(in crate::keyless) struct Signing {
    pub(in crate::keyless) identities: Vec<SanType>,
    pub(in crate::keyless) issuer: Option<&'static str>,
    pub(in crate::keyless) usage: ExtendedKeyUsagePurpose,
    /// Whether the log of certificates is told.
    pub(in crate::keyless) is_told: bool,
    /// Changes of what the log of certificates says.
    pub(in crate::keyless) timestamp: fn(&mut CertificateTimestamp),
    /// Changes of the certificate.
    pub(in crate::keyless) certificate: fn(&mut CertificateParams),
    /// When the log of signatures has it.
    pub(in crate::keyless) at: i64,
    /// Changes of what the log of signatures stands behind.
    pub(in crate::keyless) entry: fn(&mut Value),
    /// Changes of how that is written.
    pub(in crate::keyless) written: fn(String) -> String,
    /// Whether the signature is by the key of the certificate.
    pub(in crate::keyless) is_own: bool,
    /// Changes of what the log of signatures says of its tree.
    pub(in crate::keyless) checkpoint: fn(&mut SignedTree),
}

/// What the log of signatures says of its tree.
pub(in crate::keyless) struct SignedTree {
    pub(in crate::keyless) text: String,
    /// What the name of the key begins with.
    pub(in crate::keyless) hint: Vec<u8>,
}

/// What the log of certificates says of one.
pub(in crate::keyless) struct CertificateTimestamp {
    pub(in crate::keyless) version: u8,
    pub(in crate::keyless) log: Vec<u8>,
    /// In milliseconds.
    pub(in crate::keyless) time: u64,
    /// The hash and the signature, in the numbers of TLS.
    pub(in crate::keyless) algorithms: [u8; 2],
    pub(in crate::keyless) extensions: Vec<u8>,
    /// The key of who gave the certificate, hashed.
    pub(in crate::keyless) issuer: Vec<u8>,
    /// How often it says that.
    pub(in crate::keyless) times: usize,
}

impl Default for Signing {
    fn default() -> Self {
        let uri = |text: &str| SanType::URI(text.to_owned().try_into().expect("a text"));
        Self {
            identities: vec![uri(IDENTITY)],
            issuer: Some(ISSUER),
            usage: ExtendedKeyUsagePurpose::CodeSigning,
            is_told: true,
            timestamp: |_| {},
            certificate: |_| {},
            at: NOON,
            entry: |_| {},
            written: |text| text,
            is_own: true,
            checkpoint: |_| {},
        }
    }
}

pub(in crate::keyless) struct World {
    /// The last of the chain, which gives certificates for signing.
    authority: Issuer<'static, KeyPair>,
    authority_key: Vec<u8>,
    /// From the last to the first.
    chain: Vec<Vec<u8>>,
    told: KeyPair,
    log: KeyPair,
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a key")
}

fn sha256(parts: &[&[u8]]) -> Vec<u8> {
    digest(&SHA256, &parts.concat()).as_ref().to_vec()
}

fn base64(bytes: &[u8]) -> Value {
    json!(BASE64.encode(bytes))
}

/// An authority of a name.
pub(in crate::keyless) fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
    params
}

impl World {
    pub(in crate::keyless) fn new() -> Self {
        Self::of([authority("root"), authority("between")])
    }

    /// Authorities, each of which stands behind the next one; the last gives certificates for signing.
    pub(in crate::keyless) fn of(authorities: impl IntoIterator<Item = CertificateParams>) -> Self {
        let (mut chain, mut above) = (Vec::new(), None::<(Issuer<'static, KeyPair>, Vec<u8>)>);
        for params in authorities {
            let own = key();
            let made = match &above {
                Some((above, _)) => params.signed_by(&own, above),
                None => params.self_signed(&own),
            };
            chain.insert(0, made.expect("a certificate").der().to_vec());
            let public = own.subject_public_key_info();
            above = Some((Issuer::new(params, own), public));
        }
        let (authority, authority_key) = above.expect("an authority");
        Self { authority, authority_key, chain, told: key(), log: key() }
    }

    /// The trusted root.
    pub(in crate::keyless) fn root(&self) -> Value {
        let since = json!({"start": "2025-06-01T00:00:00Z"});
        let log = |key: &KeyPair| {
            let key = key.subject_public_key_info();
            json!({"logId": {"keyId": base64(&sha256(&[&key]))}, "publicKey": {"rawBytes": base64(&key), "validFor": since}})
        };
        let chain: Vec<_> = self.chain.iter().map(|certificate| json!({"rawBytes": base64(certificate)})).collect();
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log(&self.log)], "ctlogs": [log(&self.told)],
            "certificateAuthorities": [{"uri": "https://fulcio.example.org", "certChain": {"certificates": chain}, "validFor": since}],
        })
    }

    /// The signer, unless it is said otherwise.
    pub(in crate::keyless) fn signer(&self) -> KeylessSigner {
        KeylessSigner {
            issuer: ISSUER.to_owned(),
            identity: SignerIdentity::Pattern(IDENTITY.to_owned()),
            trusted_root: self.root().to_string(),
        }
    }

    fn certificate(&self, key: &KeyPair, signing: &Signing) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.serial_number = Some(SerialNumber::from(7));
        params.subject_alt_names = signing.identities.clone();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![signing.usage.clone()];
        (params.not_before, params.not_after) = (date_time_ymd(2026, 1, 1), date_time_ymd(2026, 1, 2));
        if let Some(issuer) = signing.issuer {
            let text = der::wrap(0x0c, issuer.as_bytes());
            params.custom_extensions.push(CustomExtension::from_oid_content(ISSUED_BY, text));
        }
        (signing.certificate)(&mut params);
        let given =
            |params: &CertificateParams| params.signed_by(key, &self.authority).expect("a certificate").der().to_vec();
        let before = given(&params);
        if !signing.is_told {
            return before;
        }
        let (_, parsed) = x509_parser::parse_x509_certificate(&before).expect("a certificate");
        let timestamps = self.timestamps(parsed.tbs_certificate.as_ref(), signing.timestamp);
        params
            .custom_extensions
            .push(CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 11129, 2, 4, 2], timestamps));
        given(&params)
    }

    /// What the log of certificates says, as an extension has it.
    fn timestamps(&self, certificate: &[u8], change: fn(&mut CertificateTimestamp)) -> Vec<u8> {
        let mut says = CertificateTimestamp {
            version: 0,
            log: sha256(&[&self.told.subject_public_key_info()]),
            time: u64::try_from(NOON * 1_000).expect("a time"),
            algorithms: [4, 3],
            extensions: Vec::new(),
            issuer: sha256(&[&self.authority_key]),
            times: 1,
        };
        change(&mut says);
        let CertificateTimestamp { version, log, time, algorithms, extensions, issuer, times } = says;
        let sized = |bytes: &[u8]| [&u16::try_from(bytes.len()).expect("a size").to_be_bytes()[..], bytes].concat();
        let (time, extensions) = (time.to_be_bytes(), sized(&extensions));
        let size = u32::try_from(certificate.len()).expect("a size").to_be_bytes();
        let signed = [&[0, 0][..], &time, &[0, 1], &issuer, &size[1..], certificate, &extensions].concat();
        let signature = self.told.sign(&signed).expect("a signature");
        let one = [&[version][..], &log, &time, &extensions, &algorithms, &sized(&signature)].concat();
        der::wrap(4, &sized(&sized(&one).repeat(times)))
    }

    /// A bundle over a message.
    pub(in crate::keyless) fn sign(&self, message: &[u8], signing: &Signing) -> Value {
        let key = key();
        let certificate = self.certificate(&key, signing);
        let signature = if signing.is_own { key.sign(message) } else { self.log.sign(message) };
        let signature = signature.expect("a signature");
        let pem = pem::encode(&pem::Pem::new("CERTIFICATE", certificate.clone()));
        let mut body = json!({
            "apiVersion": "0.0.1", "kind": "hashedrekord",
            "spec": {
                "data": {"hash": {"algorithm": "sha256", "value": HEXLOWER.encode(&sha256(&[message]))}},
                "signature": {"content": base64(&signature), "publicKey": {"content": base64(pem.as_bytes())}},
            },
        });
        (signing.entry)(&mut body);
        json!({
            "mediaType": BUNDLE,
            "verificationMaterial": {
                "certificate": {"rawBytes": base64(&certificate)},
                "tlogEntries": [self.entry((signing.written)(body.to_string()).as_bytes(), signing)],
                "timestampVerificationData": null,
            },
            "messageSignature": {
                "messageDigest": {"algorithm": "SHA2_256", "digest": base64(&sha256(&[message]))},
                "signature": base64(&signature),
            },
        })
    }

    /// An entry of the log of signatures: the second of three.
    fn entry(&self, body: &[u8], signing: &Signing) -> Value {
        let at = signing.at;
        let log = sha256(&[&self.log.subject_public_key_info()]);
        let (text, name) = (BASE64.encode(body), HEXLOWER.encode(&log));
        let promised = format!(r#"{{"body":"{text}","integratedTime":{at},"logID":"{name}","logIndex":11}}"#);
        let promise = self.log.sign(promised.as_bytes()).expect("a signature");
        let leaves = [b"first", body, b"third"].map(|leaf| sha256(&[&[0], leaf]));
        let [first, own, third] = &leaves;
        let root = sha256(&[&[1], &sha256(&[&[1], first, own]), third]);
        let text = format!("log.example.org\n3\n{}\n", BASE64.encode(&root));
        let mut tree = SignedTree { text, hint: log[..4].to_vec() };
        (signing.checkpoint)(&mut tree);
        let SignedTree { text, hint } = tree;
        let signed = [hint, self.log.sign(text.as_bytes()).expect("a signature")].concat();
        json!({
            "logIndex": "11", "logId": {"keyId": base64(&log)}, "kindVersion": {"kind": "hashedrekord", "version": "0.0.1"},
            "integratedTime": at.to_string(), "inclusionPromise": {"signedEntryTimestamp": base64(&promise)},
            "inclusionProof": {
                "logIndex": "1", "treeSize": "3", "rootHash": base64(&root), "hashes": [base64(first), base64(third)],
                "checkpoint": {"envelope": format!("{text}\n\u{2014} log.example.org {}\n", BASE64.encode(&signed))},
            },
            "canonicalizedBody": base64(body),
        })
    }
}
