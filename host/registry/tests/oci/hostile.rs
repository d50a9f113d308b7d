//! Registries that refuse, hang, lie and never stop: each one clear error, within limits and time.

use std::time::Duration;

use axum::{
    body::Body,
    extract::Request,
    http::{Response, header},
};
use orangery_core::error::{Code, Fault};
use orangery_registry::oci::{Client, RegistrySettings};
use tokio::time::Instant;

use crate::server::{
    Server, blob, broken_after, client, endless, limits, manifest, small_manifest, status, stuck_after, with,
};

/// Whether it may pass by itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Later,
    Final,
}

pub(crate) fn message_of(fault: &Fault) -> (Sort, Code, String) {
    let problem = fault.problem();
    let sort = if matches!(fault, Fault::Later(_)) { Sort::Later } else { Sort::Final };
    (sort, problem.code.clone(), problem.message.clone())
}

type Answer = fn() -> Response<Body>;

/// Asks a server for a manifest that always answers the same.
async fn refused(answer: Answer) -> (Sort, Code, String) {
    let server = Server::start(move |_: Request| async move { answer() }).await;
    let began = Instant::now();
    let fault = manifest(&client(), &server).await.expect_err("nothing usable came");
    assert!(began.elapsed() < Duration::from_secs(5), "{fault} after {:?}", began.elapsed());
    let (sort, code, message) = message_of(&fault);
    let subject = format!("cannot get the manifest of http://{}/team/app:1: ", server.address);
    let why = message.strip_prefix(&subject).expect("the message says what was wanted");
    (sort, code, why.to_owned())
}

#[tokio::test]
async fn a_status_says_whether_it_may_pass() {
    use Sort::{Final, Later};
    let errors = r#"{"errors": [{"code": "NAME_INVALID", "message": "hunter2"}, {"code": "hunter2"}]}"#;
    let cases: [(Answer, Sort, Code, &str); 9] = [
        (
            || status(403, ""),
            Final,
            Code::Unauthorized,
            "the registry answered 403 to a request without credentials, as the Context has none for it; give the \
             Context a registryPullSecret or an ocmConfig whose credentials may read it",
        ),
        (
            || status(404, ""),
            Later,
            Code::ConfigurationProblem,
            "the registry does not have it (404 to a request without credentials, as the Context has none for it); \
             check name and version, and whether the Context has credentials that may see it",
        ),
        (
            || with(status(429, ""), header::RETRY_AFTER, "7"),
            Later,
            Code::ConfigurationProblem,
            "the registry takes no more requests for 7 s, as it has asked for (Retry-After)",
        ),
        (
            || status(429, ""),
            Later,
            Code::ConfigurationProblem,
            "the registry takes no more requests at the moment (429) and does not say for how long",
        ),
        (
            || status(500, "hunter2"),
            Later,
            Code::ConfigurationProblem,
            "the registry is not available at the moment: it answered 500",
        ),
        (
            || status(503, ""),
            Later,
            Code::ConfigurationProblem,
            "the registry is not available at the moment: it answered 503",
        ),
        (|| status(418, ""), Final, Code::ConfigurationProblem, "the registry answered 418"),
        (|| status(204, ""), Final, Code::ConfigurationProblem, "the registry answered 204"),
        (
            || status(401, ""),
            Final,
            Code::ConfigurationProblem,
            "the registry answered 401 and asks neither for a token nor for a password, the two that are known",
        ),
    ];
    for (answer, sort, code, expected) in cases {
        assert_eq!(refused(answer).await, (sort, code, expected.to_owned()));
    }
    let server = Server::start(move |_: Request| async move { status(400, errors) }).await;
    let fault = manifest(&client(), &server).await.expect_err("refused");
    let message = &fault.problem().message;
    assert!(message.ends_with("the registry answered 400 (NAME_INVALID)"), "{message}");
}

#[tokio::test]
async fn a_registry_that_wants_a_pause_gets_it() {
    let server = Server::start(|_: Request| async { with(status(429, ""), header::RETRY_AFTER, "3600") }).await;
    let client = client();
    for _ in 0..3 {
        let fault = manifest(&client, &server).await.expect_err("refused");
        // The longest pause that a registry gets is ten minutes.
        assert!(matches!(&fault, Fault::Later(problem) if problem.message.contains("for 600 s")), "{fault}");
    }
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn hanging_ends_in_time() {
    use Sort::Later;
    let hung = Server::start(|_: Request| std::future::pending()).await;
    let fault = manifest(&client(), &hung).await.expect_err("no answer");
    let (sort, code, message) = message_of(&fault);
    assert_eq!((sort, code), (Later, Code::Timeout));
    assert!(message.ends_with("nothing came for 1 s while waiting for an answer"), "{message}");

    let (sort, code, why) = refused(|| status(200, stuck_after(b"{"))).await;
    assert_eq!((sort, code, why.as_str()), (Later, Code::Timeout, "nothing came for 1 s while its content was read"));
}

#[tokio::test]
async fn dripping_ends_in_time() {
    let drip = || {
        let every = tokio::time::interval(Duration::from_millis(100));
        let drops = futures::stream::unfold(every, |mut every| async {
            every.tick().await;
            Some((Ok::<_, std::io::Error>(bytes::Bytes::from_static(b" ")), every))
        });
        status(200, Body::from_stream(drops))
    };
    let server = Server::start(move |_: Request| async move { drip() }).await;
    let fault = manifest(&client(), &server).await.expect_err("too slow");
    let (sort, code, message) = message_of(&fault);
    assert_eq!((sort, code), (Sort::Later, Code::Timeout));
    assert!(message.ends_with("it was not complete after 2 s"), "{message}");
}

#[tokio::test]
async fn a_manifest_without_end_is_not_kept() {
    let (sort, code, why) = refused(|| status(200, endless())).await;
    let expected = "it has more than 65536 bytes, which is the limit";
    assert_eq!((sort, code, why.as_str()), (Sort::Final, Code::LimitExceeded, expected));
    let (_, _, why) = refused(|| status(200, vec![b' '; 70_000])).await;
    assert_eq!(why, "it has more than 65536 bytes, which is the limit: it is announced with 70000");
}

#[tokio::test]
async fn what_is_no_manifest_is_told() {
    let (sort, _, why) = refused(|| status(200, "<html>hello</html>")).await;
    assert_eq!(sort, Sort::Final);
    assert!(why.starts_with("it is no manifest: expected value at line 1 column 1"), "{why}");
    let (_, _, why) = refused(|| status(200, r#"{"schemaVersion": 2, "manifests": []}"#)).await;
    assert_eq!(why, "its index names no manifest");
}

#[tokio::test]
async fn a_manifest_must_have_the_digest_it_is_asked_by() {
    let server = Server::start(|_: Request| async { status(200, small_manifest()) }).await;
    let wanted = orangery_core::digest::sha256(b"another");
    let reference = server.reference(&format!("@{wanted}"));
    let fault = client().manifest(&reference, &Default::default()).await.expect_err("another manifest");
    let (sort, _, message) = message_of(&fault);
    let got = orangery_core::digest::sha256(small_manifest().as_bytes());
    assert_eq!(sort, Sort::Final);
    assert!(message.ends_with(&format!("it is {got} and not {wanted}; push it again")), "{message}");
}

#[tokio::test]
async fn redirects_are_followed_to_an_end() {
    let circle = Server::start(|request: Request| async move {
        let next = if request.uri().path().ends_with("/a") { "/b" } else { "/a" };
        with(status(307, ""), header::LOCATION, next)
    })
    .await;
    let long = Server::start(|request: Request| async move {
        with(status(302, ""), header::LOCATION, &format!("{}x", request.uri().path()))
    })
    .await;
    let cases: [(&Server, &str); 2] = [(&circle, "in a circle"), (&long, "more than 3 times")];
    for (server, expected) in cases {
        let fault = manifest(&client(), server).await.expect_err("nowhere");
        let (sort, _, message) = message_of(&fault);
        assert_eq!(sort, Sort::Final);
        assert!(message.ends_with(&format!("the registry redirects {expected}")), "{message}");
    }
    let bad: [(Answer, &str); 4] = [
        (|| status(301, ""), "the registry redirects without saying where to"),
        (|| with(status(301, ""), header::LOCATION, "http://[x"), "the registry redirects to what is no address"),
        (
            || with(status(301, ""), header::LOCATION, "https://u:hunter2@r.example/"),
            "the registry redirects to an address with a user in it",
        ),
        (
            || with(status(301, ""), header::LOCATION, "http://r.example/?signature=hunter2"),
            "http:// is refused for r.example; use https://, or name the registry with --plain-http-registry r.example",
        ),
    ];
    for (answer, expected) in bad {
        assert_eq!(refused(answer).await.2, expected);
    }
}

#[tokio::test]
async fn c_95_no_registry_leads_to_a_metadata_service() {
    let answer: Answer = || with(status(307, ""), header::LOCATION, "https://169.254.169.254/latest/meta-data");
    let sentence = "169.254.169.254 leads to 169.254.169.254, a link-local address, where clouds have their metadata service; no \
                    client of this host connects there: name another address";
    assert_eq!(refused(answer).await, (Sort::Final, Code::Forbidden, sentence.to_owned()));
}

pub(crate) const CONTENT: &[u8] = b"the content of a blob";

#[tokio::test]
async fn a_blob_is_what_its_digest_and_size_say() {
    let of = |answer: Answer, size: Option<u64>| async move {
        let server = Server::start(move |_: Request| async move { answer() }).await;
        match blob(&client(), &server, CONTENT, size).await {
            Ok(bytes) => Ok(bytes),
            Err(fault) => {
                let (sort, _, message) = message_of(&fault);
                let why = message.rsplit("/team/app: ").next().expect("what was wanted").to_owned();
                Err((sort, why))
            }
        }
    };
    let streamed: Answer = || status(200, Body::from_stream(futures::stream::iter([Ok::<_, std::io::Error>(CONTENT)])));
    for size in [None, Some(21)] {
        assert_eq!(of(|| status(200, CONTENT), size).await, Ok(CONTENT.to_vec()));
        assert_eq!(of(streamed, size).await, Ok(CONTENT.to_vec()));
    }
    use Sort::{Final, Later};
    let wrong_size = |got| (Final, format!("it has {got} bytes and was announced with 20; push it again"));
    assert_eq!(of(|| status(200, CONTENT), Some(20)).await, Err(wrong_size(21)));
    assert_eq!(of(streamed, Some(20)).await, Err(wrong_size(21)));
    assert_eq!(of(|| status(200, &CONTENT[..3]), Some(20)).await, Err(wrong_size(3)));
    let digests = [CONTENT, &CONTENT[..3]].map(orangery_core::digest::sha256);
    let [expected, got] = digests;
    let wrong_digest =
        (Final, format!("the content is not what its digest names: it is {got} and not {expected}; push it again"));
    assert_eq!(of(|| status(200, &CONTENT[..3]), None).await, Err(wrong_digest));
    let cut = of(|| with(status(200, broken_after(b"the")), header::CONTENT_LENGTH, "21"), Some(21)).await;
    assert_eq!(cut, Err((Later, "the connection ended after 3 bytes of 21".to_owned())));
    let cut = of(|| status(200, broken_after(b"the")), Some(21)).await;
    assert_eq!(cut, Err((Later, "the connection ended after 3 bytes".to_owned())));
    let endless = of(|| status(200, endless()), None).await;
    assert_eq!(endless, Err((Final, "it has more than 262144 bytes, which is the limit".to_owned())));
    let big = of(|| status(200, ""), Some(1 << 40)).await;
    let expected = "it has more than 262144 bytes, which is the limit: it is announced with 1099511627776";
    assert_eq!(big, Err((Final, expected.to_owned())));
}

#[tokio::test]
async fn a_registry_that_is_not_there_may_come() {
    let server = Server::start(|_: Request| std::future::pending()).await;
    let reference = server.reference(":1");
    drop(server);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let gone = listener.local_addr().expect("an address");
    drop(listener);
    let client = client();
    for reference in [format!("http://{gone}/a:1"), format!("{gone}/a:1"), "https://r.invalid/a:1".to_owned()] {
        let reference = reference.parse().expect("a reference");
        let fault = client.manifest(&reference, &Default::default()).await.expect_err("nobody is there");
        assert!(matches!(&fault, Fault::Later(problem) if problem.message.contains("cannot be reached: ")), "{fault}");
    }
    assert!(client.manifest(&reference, &Default::default()).await.is_err());
}

#[tokio::test]
async fn http_is_for_this_machine_and_for_what_the_operator_names() {
    let server = Server::start(|_: Request| async { status(200, small_manifest()) }).await;
    // This machine needs no scheme, TLS or not.
    let reference = server.address.to_string() + "/team/app:1";
    let reference = reference.parse().expect("a reference");
    let client = client();
    for _ in 0..2 {
        client.manifest(&reference, &Default::default()).await.expect("a manifest");
    }
    let plain = "http://r.invalid/a:1".parse().expect("a reference");
    let fault = client.manifest(&plain, &Default::default()).await.expect_err("refused");
    assert!(fault.to_string().contains("http:// is refused for r.invalid"), "{fault}");
    let named = RegistrySettings {
        limits: limits(),
        plain_http: ["r.invalid".to_owned()].into(),
        ..RegistrySettings::default()
    };
    let fault = Client::new(named).expect("a client").manifest(&plain, &Default::default()).await;
    let fault = fault.expect_err("there is no such host");
    assert!(fault.to_string().contains("cannot be reached"), "{fault}");
}

#[tokio::test]
async fn calls_for_the_same_at_once_share_one_request() {
    let server = Server::start(|_: Request| async {
        tokio::task::yield_now().await;
        status(200, small_manifest())
    })
    .await;
    let client = client();
    let answers = futures::future::join_all((0..20).map(|_| manifest(&client, &server))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn an_index_leads_to_its_first_manifest() {
    let digest = orangery_core::digest::sha256(small_manifest().as_bytes());
    let asked = digest.clone();
    let server = Server::start(move |request: Request| {
        let index = serde_json::json!({"schemaVersion": 2, "manifests": [
            {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": asked, "size": 1},
        ]});
        let body = if request.uri().path().ends_with("/1") { index.to_string() } else { small_manifest() };
        async move { status(200, body) }
    })
    .await;
    let manifest = manifest(&client(), &server).await.expect("a manifest");
    assert_eq!(manifest.digest.to_string(), digest);
    let paths: Vec<_> = server.seen().into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths, ["/v2/team/app/manifests/1".to_owned(), format!("/v2/team/app/manifests/{digest}")]);
}

#[tokio::test]
async fn c_148_an_index_without_its_manifest_is_broken_and_one_that_is_not_there_is_waited_for() {
    let digest = orangery_core::digest::sha256(small_manifest().as_bytes());
    let named = digest.clone();
    let server = Server::start(move |request: Request| {
        let index = serde_json::json!({"schemaVersion": 2, "manifests": [
            {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": named, "size": 1},
        ]});
        let there = request.uri().path().ends_with("/1");
        let answer = if there { status(200, index.to_string()) } else { status(404, "") };
        async move { answer }
    })
    .await;
    let client = client();
    let broken = manifest(&client, &server).await.expect_err("it is broken");
    let why = format!("its index names the manifest {digest}, which the registry does not have; push it again");
    let message = format!("cannot get the manifest of {}: {why}", server.reference(":1"));
    assert_eq!(message_of(&broken), (Sort::Final, Code::ConfigurationProblem, message));
    let absent = client.manifest(&server.reference(":2"), &Default::default()).await.expect_err("it is not there");
    assert_eq!(message_of(&absent).0, Sort::Later);
}

#[tokio::test]
async fn a_registry_with_tls_leads_no_client_out_of_it() {
    for how in [header::LOCATION, header::WWW_AUTHENTICATE] {
        let inside = Server::start(|_: Request| async { status(200, small_manifest()) }).await;
        let location = format!("http://{}/token", inside.address);
        let (server, settings) = Server::start_with_tls(move |_: Request| {
            let answer = if how == header::LOCATION {
                with(status(307, ""), header::LOCATION, &location)
            } else {
                with(status(401, ""), header::WWW_AUTHENTICATE, &format!("Bearer realm=\"{location}\""))
            };
            async move { answer }
        })
        .await;
        let reference = format!("{}/team/app:1", server.address).parse().expect("a reference");
        let client = Client::new(settings.clone()).expect("a client");
        let fault = client.manifest(&reference, &Default::default()).await.expect_err("led out of TLS");
        let expected = format!("the registry was asked with TLS and leads to {} without", inside.address);
        assert!(matches!(fault, Fault::Invalid(_)) && fault.to_string().contains(&expected), "{fault}");
        assert_eq!(inside.seen().len(), 0);
        // Whom the operator names may be asked so.
        let named = RegistrySettings { plain_http: [inside.address.to_string()].into(), ..settings };
        let outcome = Client::new(named).expect("a client").manifest(&reference, &Default::default()).await;
        assert!(!outcome.is_err_and(|fault| fault.to_string().contains("asked with TLS")));
    }
}
